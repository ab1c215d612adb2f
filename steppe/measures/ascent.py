"""The largest increase of the loss within an ellipsoid, by projected ascent with restarts."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check
from steppe.estimate import Estimate
from steppe.measures.operators.curvature import settled
from steppe.measures.operators.hessian import hessian
from steppe.measures.operators.pieces import Pieces
from steppe.measures.operators.statistics import Statistics
from steppe.measures.randomness import Key, generator
from steppe.measures.rounding import in_double, rounding
from steppe.problems import Problem

# The ascent rests when its step, relative to the radius, is this short; the rounding may hide as much of its height.
_REST = 1e-4
# Times that the rounding at its end is looked at.
_ROUNDED = 8


def largest_increase(
    problem: Problem,
    w: Array,
    scale: Array,
    radius: float,
    *,
    steps: int,
    restarts: int,
    statistics: Statistics,
    memory: float,
    key: Key,
) -> Estimate:
    """max L(w + scale ⊙ ε) − L(w) over ‖ε‖₂ ≤ radius: the best point found, sought again in float64 where rounding
    hides the difference."""
    steps = check.integer("steps", steps, minimum=1)
    restarts = check.integer("restarts", restarts, minimum=0)
    root = jax.random.key(int(generator(key).integers(2**63)))

    def found(problem: Problem, w: Array) -> tuple[float, float, int, bool]:
        """(increase, its rounding, gradients, whether all ascents came to rest)."""
        problem, w, pieces = settled(hessian.model, problem, w, statistics=statistics, memory=memory)
        rho, size = jnp.asarray(radius, w.dtype), jnp.asarray(np.asarray(scale), w.dtype)
        # From 0 the first step goes along the gradient, to the edge: the point that ASAM itself takes.
        draws = jax.random.split(root, restarts)
        starts = [jnp.zeros_like(w), *(jax.random.normal(k, w.shape, w.dtype) for k in draws)]
        ends = [_ascent(problem, w, size, rho, start, steps, pieces) for start in starts]
        value, e, _, _ = max(ends, key=lambda end: float(end[0]))
        check.finite("L(w + step)", float(value), "The loss overflows at that distance: take a smaller radius.")
        error = rounding(problem, w, pieces, jnp.tile(size * e, (_ROUNDED, 1)))
        return float(value), error, sum(int(end[2]) for end in ends), all(bool(end[3]) for end in ends)

    best, error, gradients, at_rest = found(problem, w)
    if error > _REST * best and problem.w0.dtype != np.float64:
        with jax.enable_x64(True):
            wide = in_double(problem, problem.vector(w))
            if wide is not None:
                best, error, more, at_rest = found(*wide)
                gradients += more
    # No step at all attains 0.
    lower = max(best - error, 0.0)
    return Estimate(best, lower, math.inf, 1.0, gradients, converged=at_rest and error <= _REST * best)


@eqx.filter_jit
def _ascent(
    problem: Problem, w: Array, scale: Array, radius: Array, start: Array, steps: int, pieces: Pieces
) -> tuple[Array, Array, Array, Array]:
    """(increase, ε, gradients, whether it came to rest): a step longer by half after each success, half as long after
    each failure, so that the loss never falls."""

    def loss(e: Array) -> Array:
        return pieces.mean(problem, lambda piece: piece.loss(w + scale * e))

    def inside(e: Array) -> Array:
        return e * jnp.minimum(1.0, radius / jnp.maximum(jnp.linalg.norm(e), float(np.finfo(e.dtype).tiny)))

    def unit(g: Array) -> Array:
        # A point without slope stays where it is.
        length = jnp.linalg.norm(g)
        return jnp.where(length > 0, g / jnp.where(length > 0, length, 1.0), 0.0)

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        e, value, g, length, count = state
        trial = inside(e + length * radius * unit(g))
        trial_value, trial_g = jax.value_and_grad(loss)(trial)
        better = trial_value > value
        e, value, g = (jnp.where(better, a, b) for a, b in ((trial, e), (trial_value, value), (trial_g, g)))
        return e, value, g, jnp.where(better, 1.5, 0.5) * length, count + 1

    def going(state: tuple[Array, ...]) -> Array:
        return (state[4] <= steps) & (state[3] > _REST)

    first = inside(start)
    state: tuple[Array, ...] = (first, *jax.value_and_grad(loss)(first), jnp.ones((), w.dtype), jnp.ones((), int))
    e, value, _, length, count = jax.lax.while_loop(going, step, state)
    return value - loss(jnp.zeros_like(w)), e, count, length <= _REST
