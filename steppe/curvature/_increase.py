"""L(w + step) − L(w) for random steps and for the worst step, with a bound on its rounding."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check
from steppe.curvature._backend import Increase
from steppe.curvature._matrices import hessian
from steppe.curvature._operator import settled, unit
from steppe.curvature._statistics import Pieces, Start, Statistics, part
from steppe.linalg._operator import length as length_of
from steppe.problem import Problem, ravel

# Pairs of draws computed together, and draws whose rounding is bounded.
_BATCH, _ROUNDED = 16, 8
# An ascent ends when its step, relative to the radius, is this short.
REST = 1e-4
OVERFLOW = "The loss overflows at that distance: take a smaller radius."


@dataclass(frozen=True, eq=False)
class JaxIncrease(Increase):
    """The increase of the loss of a JAX problem."""

    problem: Problem
    w: Array
    scale: NDArray[Any]
    statistics: Statistics
    memory: float
    key: Array
    treated: Problem  # the problem with its batch statistics treated
    pieces: Pieces

    @classmethod
    def of(
        cls, problem: Problem, w: Array | None, scale: NDArray[Any], *, statistics: Statistics, memory: float, seed: int
    ) -> "JaxIncrease":
        return cls._of(problem, w, scale, statistics, memory, jax.random.key(seed))

    @classmethod
    def _of(
        cls, problem: Problem, w: Array | None, scale: NDArray[Any], statistics: Statistics, memory: float, key: Array
    ) -> "JaxIncrease":
        treated, w, pieces = settled(hessian.model, problem, w, statistics=statistics, memory=memory)
        return cls(problem, w, np.asarray(scale, w.dtype), statistics, memory, key, treated, pieces)

    @property
    def is_double(self) -> bool:
        return bool(self.problem.w0.dtype == np.float64)

    @contextmanager
    def in_double(self) -> Iterator["JaxIncrease | None"]:
        """A context in which JAX runs in 64 bits, with the same increase in float64; None if that gains nothing."""
        with jax.enable_x64(True):
            wide = in_double(self.problem, self.w)
            yield None if wide is None else self._of(*wide, self.scale, self.statistics, self.memory, self.key)

    def pairs(self, number: int) -> NDArray[np.float64]:
        """½[L(w + s ⊙ g) + L(w − s ⊙ g)] − L(w) for the `number`-th batch of 16 standard normal draws g."""
        draws = jax.random.split(jax.random.fold_in(self.key, number), _BATCH)
        found = _increases(self.treated, self.w, jnp.asarray(self.scale), self.pieces, draws)
        pairs = np.asarray(found, dtype=float)
        check.finite("L(w + step)", pairs, OVERFLOW)
        return pairs

    def rounding(self, number: int | None = None) -> float:
        """A bound on the rounding of such differences, from a few draws: those of a batch, or others."""
        key = self.key if number is None else jax.random.fold_in(self.key, number)
        return rounding(self.treated, self.w, self.pieces, _moves(jnp.asarray(self.scale), key))

    def ascend(self, radius: float, *, steps: int, restarts: int) -> tuple[float, float, int, bool]:
        """The largest increase found over ‖ε‖ ≤ radius, its rounding, the number of gradients, and whether every ascent
        came to rest."""
        problem, w, pieces, scale = self.treated, self.w, self.pieces, jnp.asarray(self.scale)

        def slope(e: NDArray[Any]) -> tuple[float, NDArray[Any]]:
            value, g = _slope(problem, w, scale, pieces, jnp.asarray(e))
            return float(value), np.asarray(g)

        # From 0 the first step goes along the gradient to the boundary: the point that ASAM takes.
        keys = jax.random.split(self.key, restarts)
        starts = [jnp.zeros_like(w), *(jax.random.normal(k, w.shape, w.dtype) for k in keys)]
        value, e, gradients, at_rest = ascents(slope, [np.asarray(s) for s in starts], radius, steps)
        check.finite("L(w + step)", value, OVERFLOW)
        error = rounding(problem, w, pieces, jnp.tile(scale * jnp.asarray(e), (_ROUNDED, 1)))
        return value, error, gradients, at_rest


@jax.jit
def _moves(scale: Array, key: Array) -> Array:
    return scale[None] * jax.random.normal(key, (_ROUNDED, scale.size), scale.dtype)


@eqx.filter_jit
def _increases(problem: Problem, w: Array, scale: Array, pieces: Pieces, draws: Array) -> Array:
    def loss(v: Array) -> Array:
        return pieces.mean(problem, lambda piece: piece.loss(v))

    def pair(draw: Array) -> Array:
        step = scale * jax.random.normal(draw, w.shape, w.dtype)
        return 0.5 * (loss(w + step) + loss(w - step)) - loss(w)

    return jax.lax.map(pair, draws)


@eqx.filter_jit
def _slope(problem: Problem, w: Array, scale: Array, pieces: Pieces, e: Array) -> tuple[Array, Array]:
    def loss(e: Array) -> Array:
        return pieces.mean(problem, lambda piece: piece.loss(w + scale * e))

    return jax.value_and_grad(loss)(e)


# The value and the gradient of a function of ε.
Slope = Callable[[NDArray[Any]], tuple[float, NDArray[Any]]]


def ascents(
    slope: Slope, starts: Iterable[NDArray[Any]], radius: float, steps: int
) -> tuple[float, NDArray[Any], int, bool]:
    """The highest value − value(0) that projected ascents in ‖ε‖ ≤ radius find, its ε, the number of gradients, and
    whether every ascent came to rest.

    The step grows by half after a success and is halved after a failure, so that the value never falls.

    >>> height = lambda e: (float(e[0]), np.array([1.0, 0.0]))
    >>> value, e, gradients, at_rest = ascents(height, [np.zeros(2)], 0.5, 50)
    >>> value, e.tolist(), at_rest
    (0.5, [0.5, 0.0], True)
    """
    ends = [_ascent(slope, start, radius, steps) for start in starts]
    value, e, _, _ = max(ends, key=lambda end: end[0])
    lowest, _ = slope(np.zeros_like(e))
    return value - lowest, e, 1 + sum(end[2] for end in ends), all(end[3] for end in ends)


def _ascent(slope: Slope, start: NDArray[Any], radius: float, steps: int) -> tuple[float, NDArray[Any], int, bool]:
    def inside(e: NDArray[Any]) -> NDArray[Any]:
        size = length_of(e)
        return e * np.asarray(radius / size, e.dtype) if size > radius else e

    def finite_slope(e: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        # A higher point that overflows is no failure of the step: the maximum is out of reach.
        value, g = slope(e)
        check.finite("L(w + step)", value, OVERFLOW)
        return value, g

    with np.errstate(over="ignore", invalid="ignore"):
        e = inside(start)
    value, g = finite_slope(e)
    length, count = 1.0, 1
    while count <= steps and length > REST:
        size = length_of(g)
        # A point without slope stays where it is.
        with np.errstate(over="ignore", invalid="ignore"):
            trial = inside(e + np.asarray(length * radius / size, e.dtype) * g) if size > 0 else e
        trial_value, trial_g = finite_slope(trial)
        better = trial_value > value
        if better:
            e, value, g = trial, trial_value, trial_g
        length, count = length * (1.5 if better else 0.5), count + 1
    return value, e, count, length <= REST


# The rounding of a difference of two losses, and the same problem in double precision, where it is smaller.


def rounding(problem: Problem, w: Array, pieces: Pieces, moves: Array) -> float:
    """A bound on the error of a computed L(w + move) − L(w), for moves like the given rows.

    The computed loss of an example is that of parameters and predictions with relative errors of `unit`, layer by layer
    (Higham 2002, section 3.5), rounded once more: its error is unit · (|ℓᵢ| + ‖∇ℓᵢ ⊙ w‖ + ‖∇_f ℓᵢ ⊙ f‖). Products with
    random signs estimate the norms; the largest sum over the moves counts.
    """
    u = unit(problem)
    size = float(_condition(problem, w, pieces, moves, jnp.asarray(u, w.dtype)))
    return u * size if np.isfinite(size) else np.inf


@eqx.filter_jit
def _condition(problem: Problem, w: Array, pieces: Pieces, moves: Array, u: Array) -> Array:
    def one(row: tuple[Array, Array]) -> Array:
        move, draw = row
        spread, signs, outer = jax.random.split(draw, 3)
        # A slope that is zero at w can be non-zero at the unrounded parameters.
        v = w + move + u * jnp.abs(w) * jax.random.normal(spread, w.shape, w.dtype)
        tangent = v * jax.random.rademacher(signs, w.shape, w.dtype)

        def summed(start: Start, size: int) -> Array:
            piece = part(problem, start, size)
            f, df = jax.jvp(piece.predictions, (v,), (tangent,))
            df = df + f * jax.random.rademacher(outer, f.shape, f.dtype)
            values, slopes = jax.jvp(lambda f: jax.vmap(problem.loss_function.example)(f, piece.y), (f,), (df,))
            return jnp.sum(jnp.abs(values) + jnp.abs(slopes))

        return pieces.total(summed) / pieces.n

    return jnp.max(jax.lax.map(one, (moves, jax.random.split(jax.random.key(0), len(moves)))))


def in_double(problem: Problem, w: Array) -> tuple[Problem, Array] | None:
    """The same problem and parameters in float64, for JAX in 64 bits; None if that gains nothing, since the network is
    in float64 already or fixes its own precision."""

    def wide(a: Array) -> np.ndarray:
        return np.asarray(a, np.float64) if jnp.issubdtype(a.dtype, jnp.floating) else np.asarray(a)

    params, x = (jax.tree.map(wide, tree) for tree in (problem.unravel(w), problem.x))
    try:
        other = Problem(problem.predict, params, x, np.asarray(problem.y), problem.loss_function)
        narrower = unit(other) < unit(problem)
    except TypeError:  # the network has constants in float32, and JAX does not mix precisions
        return None
    return (other, ravel(params)[0]) if narrower else None
