"""Whether a rescaling leaves the function as it is, for all parameters and not only for the given ones."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.sparse import csr_array

from steppe.measures.flattening.neurons import Arrays, Neurons, exponents
from steppe.measures.operators.pieces import part
from steppe.problems import Problem

_EXAMPLES = 256
# A power of two changes no digit of a product: what is left over is that of a root or a quotient, a few ulp.
_ULPS = 1e3


@eqx.filter_jit
def _predictions(problem: Problem, w: Array) -> Array:
    return problem.predictions(w)


class Function:
    """The network on some examples, at w and at a random point near it.

    At w alone a network whose last layer is zero would have every symmetry.
    """

    def __init__(self, problem: Problem, w: Array):
        self.problem, self.arrays = part(problem, 0, min(_EXAMPLES, len(problem))), Arrays.of(problem.unravel)
        given, moved, rng = np.asarray(w, dtype=float), np.array(w, dtype=float), np.random.default_rng(0)
        for name in self.arrays.starts:
            own = self.arrays.positions(name)
            size = np.sqrt(np.mean(given[own] ** 2)) or 1.0
            moved[own] += 0.5 * size * rng.standard_normal(moved[own].shape)
        self.points = (given, moved)
        self.values = tuple(self(point) for point in self.points)

    @property
    def outputs(self) -> int:
        """Numbers that it puts out for an example."""
        return int(np.prod(self.values[0].shape[1:]))

    def __call__(self, w: Any) -> Any:
        return np.asarray(_predictions(self.problem, jnp.asarray(w, self.problem.w0.dtype)))

    def unchanged(self, layers: Sequence[Neurons]) -> bool:
        """Whether random factors from 1/8 to 8 for these neurons change nothing."""
        A, widths = exponents(self.arrays, layers, self.points[0].size)
        factors = _powers_of_two(A, sum(widths))
        return all(
            self._equal(self(point * factors), value) for point, value in zip(self.points, self.values, strict=True)
        )

    def normalised(self, names: Sequence[str]) -> bool:
        """Whether these arrays have no size: multiplied together by 2²⁰ and 2⁴⁰ they give the same function, and
        nearly the one they give as they are; nearly, as a normalisation may add a small constant to a variance."""
        own = np.concatenate([np.arange(self.points[1].size)[self.arrays.positions(name)] for name in names])
        value, point = self.values[1], self.points[1]

        def times(factor: float) -> Any:
            scaled = point.copy()
            scaled[own] *= factor
            return self(scaled)

        large, larger = times(2.0**20), times(2.0**40)
        scale = np.max(np.abs(value), initial=0.0)
        return bool(
            np.max(np.abs(times(0.0) - value), initial=0.0) > 0.01 * scale  # they do something
            and self._equal(larger, large)
            and np.max(np.abs(large - value), initial=0.0) <= 0.01 * scale
        )

    def _equal(self, f: Any, g: Any) -> bool:
        eps = float(np.finfo(self.problem.w0.dtype).eps)
        return bool(np.max(np.abs(f - g), initial=0.0) <= _ULPS * eps * np.max(np.abs(g), initial=0.0))


def _powers_of_two(A: csr_array, units: int) -> Any:
    powers = np.random.default_rng(1).choice([-3, -2, -1, 1, 2, 3], units)
    return np.exp2(A @ powers.astype(float))
