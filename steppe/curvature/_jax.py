"""The JAX backend: a `steppe.Problem` behind the seam."""

from typing import Any, final

import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe.curvature import _inputs
from steppe.curvature._backend import Backend, ExactTraces, Increase, Scores, backend
from steppe.curvature._increase import JaxIncrease
from steppe.curvature._kinks import Kinks, kinks_of_equations
from steppe.curvature._matrices import smaller
from steppe.curvature._operator import Curvature, Operator, linearised_operator
from steppe.curvature._statistics import Statistics
from steppe.curvature._traces import JaxTraces
from steppe.problem import Problem


@final
class Jax(Backend):
    def vector(self, problem: Problem, w: Any = None) -> Array:
        return _inputs.vector(problem, w)

    def reproducible(self, problem: Problem, w: Any = None) -> Array:
        return _inputs.reproducible(problem, w)

    def prepared(self, problem: Problem, w: Any = None) -> Array:
        return _inputs.prepared(problem, w)

    def scores(self, problem: Problem, w: Array) -> Scores:
        f = _inputs.predictions(problem, w)
        signs = problem.loss_function.name == "logistic" or f.ndim == 1 or f.shape[-1] == 1
        return Scores(f, np.asarray(problem.y), signs)

    def loss_value(self, problem: Problem, w: Array) -> float:
        return _inputs.loss_value(problem, w)

    def treatment(self, problem: Problem, statistics: Statistics) -> str:
        return str(statistics)

    def operator(
        self, curvature: Curvature, problem: Problem, w: Array | None, *, statistics: Statistics, memory: float
    ) -> Operator:
        return linearised_operator(curvature.model, curvature.name, problem, w, statistics=statistics, memory=memory)

    def smaller(
        self, curvature: Curvature, problem: Problem, w: Array | None, *, statistics: Statistics, memory: float
    ) -> Operator:
        return smaller(curvature, problem, w, statistics=statistics, memory=memory)

    def exact_traces(
        self, curvature: Curvature, problem: Problem, w: Array | None, *, statistics: Statistics, memory: float
    ) -> ExactTraces:
        return JaxTraces.of(curvature, problem, w, statistics=statistics, memory=memory)

    def increase(
        self,
        problem: Problem,
        w: Array | None,
        scale: NDArray[Any],
        *,
        statistics: Statistics,
        memory: float,
        seed: int,
    ) -> Increase:
        return JaxIncrease.of(problem, w, scale, statistics=statistics, memory=memory, seed=seed)

    def kinks(self, problem: Problem, w: Array | None, *, rtol: float, sharpness: float | None) -> Kinks:
        return kinks_of_equations(problem, w, rtol=rtol, sharpness=sharpness)


JAX = Jax()
backend.register(Problem, lambda problem: JAX)
