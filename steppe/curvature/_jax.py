"""The JAX backend: a `steppe.Problem` behind the seam."""

from collections.abc import Mapping
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check
from steppe.curvature import _inputs
from steppe.curvature._backend import Backend, ExactTraces, Increase, Scores, backend
from steppe.curvature._increase import JaxIncrease
from steppe.curvature._kinks import Kinks, kinks_of_equations
from steppe.curvature._matrices import smaller
from steppe.curvature._operator import Curvature, Operator, linearised_operator
from steppe.curvature._statistics import Statistics, treats_examples_alone
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

    def gradient(self, problem: Problem, w: Array) -> NDArray[Any]:
        return np.asarray(_gradient(problem, w))

    def groups(self, problem: Problem, w: Array, count: int, *, seed: int) -> tuple[Problem, ...]:
        size = len(problem) // count
        if size < 1:
            check.refuse("count", f"at most the number of examples, {len(problem)}", count, "Take fewer groups.")
        if not treats_examples_alone(problem, jnp.asarray(w, problem.w0.dtype)):
            rule = "of examples that do not see each other"
            check.refuse("groups", rule, "a network with batch statistics", "Freeze its statistics.")
        order = np.random.default_rng(seed).permutation(len(problem))
        return tuple(_rows(problem, order[k * size : (k + 1) * size]) for k in range(count))

    def arrays(self, problem: Problem) -> Mapping[str, tuple[int, ...]]:
        unravel = problem.unravel
        numbered = jax.tree.unflatten(unravel.treedef, range(len(unravel.shapes)))
        paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(numbered)]
        names = [jax.tree_util.keystr(path, simple=True, separator=".") or "w" for path in paths]
        return dict(zip(names, unravel.shapes, strict=True))

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


_gradient = eqx.filter_jit(lambda problem, w: jax.grad(problem.loss)(w))


def _rows(problem: Problem, index: NDArray[np.int64]) -> Problem:
    x, y = jax.tree.map(lambda a: a[index], (problem.x, problem.y))
    return eqx.tree_at(lambda p: (p.x, p.y), problem, (x, y))


JAX = Jax()
backend.register(Problem, lambda problem: JAX)
