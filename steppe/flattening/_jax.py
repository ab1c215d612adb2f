"""A JAX problem for `flatten`."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import linalg
from steppe._same import shaped, traced
from steppe.curvature import gauss_newton, gram
from steppe.curvature._increase import in_double
from steppe.curvature._inputs import prepared
from steppe.curvature._matrices import rank
from steppe.curvature._statistics import part, takes
from steppe.estimate import Accuracy, Estimate
from steppe.flattening._jacobian import Jacobian, diagonal, drawn_squares, root
from steppe.flattening._network import Network, network
from steppe.flattening._scales import Groups
from steppe.flattening._symmetries import scale_groups
from steppe.problem import Predict, Problem, Unravel
from steppe.training_set import Floats

# The network is read for so many examples, and compared on at most _EXAMPLES of the data and as many random ones.
_READ, _EXAMPLES = 2, 32


@dataclass(frozen=True, eq=False)
class JaxNetwork(Network):
    problem: Problem
    w: Array

    def read(self) -> Groups:
        n = len(self.problem)
        few = part(self.problem, 0, _READ) if n > _READ and takes(self.problem, self.w, _READ) else self.problem
        x, treedef = jax.tree.flatten(few.x)
        return _read(few.predict, few.unravel, treedef, tuple((a.shape, a.dtype) for a in x))

    @cached_property
    def _wide(self) -> Problem:
        """Some examples, in float64 if the network takes it."""
        n = min(_EXAMPLES, len(self.problem))
        few = part(self.problem, 0, n) if takes(self.problem, self.w, n) else self.problem
        with jax.enable_x64(True):
            wide = in_double(few, self.w)
        return few if wide is None else wide[0]

    @cached_property
    def _inputs(self) -> list[Any]:
        """The examples, and normal random numbers of their mean and spread; what is not real stays."""
        rng = np.random.default_rng(2)

        def drawn(a: Array) -> np.ndarray:
            given = np.asarray(a)
            if not jnp.issubdtype(given.dtype, np.floating):
                return given
            random = given.mean() + (given.std() or 1.0) * rng.standard_normal(given.shape)
            return np.asarray(random, given.dtype)

        return [self._wide.x, jax.tree.map(drawn, self._wide.x)]

    def outputs(self, w: Floats) -> NDArray[Any]:
        problem = self._wide
        with jax.enable_x64(True):
            v = jnp.asarray(w, problem.w0.dtype)
            return np.stack([np.asarray(_predictions(problem.predict, problem.unravel, v, x)) for x in self._inputs])

    def diagonal(self) -> Floats:
        return diagonal(self.problem, self.w)

    def draw(self, rng: np.random.Generator) -> Floats:
        return drawn_squares(self.problem, self.w, int(rng.integers(2**31)))

    def rows(self) -> int:
        return rank(gauss_newton, self.problem, self.w)

    def root(self) -> Floats:
        return root(self.problem, self.w)

    def jacobian(self, kept: NDArray[np.bool_]) -> Jacobian:
        return Jacobian.of(self.problem, self.w, kept)

    def largest(self, w: Array, rtol: float, start: Floats | None = None) -> Estimate:
        operator = gram(gauss_newton, self.problem, w)
        return linalg.largest(operator, operator.size, accuracy=Accuracy(rtol), start=start, key=0).estimate


@network.register
def _(problem: Problem, w: Any = None) -> Network:
    return JaxNetwork(problem, prepared(problem, w))


@eqx.filter_jit
def _predictions(predict: Predict, unravel: Unravel, w: Array, x: Any) -> Array:
    return predict(unravel(w), x)


@lru_cache(maxsize=8)
def _read(predict: Predict, unravel: Unravel, treedef: Any, rows: tuple[tuple[tuple[int, ...], Any], ...]) -> Groups:
    leaves = [shaped(shape, dtype) for shape, dtype in zip(unravel.shapes, unravel.dtypes, strict=True)]
    x = jax.tree.unflatten(treedef, [shaped(*row) for row in rows])
    return scale_groups(traced(predict, jax.tree.unflatten(unravel.treedef, leaves), x), unravel.shapes)
