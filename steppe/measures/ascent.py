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
from steppe.problems import Problem

# The ascent rests when its step, relative to the radius, is this short.
_REST = 1e-4


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
    """max L(w + scale ⊙ ε) − L(w) over ‖ε‖₂ ≤ radius: the best point found."""
    steps = check.integer("steps", steps, minimum=1)
    restarts = check.integer("restarts", restarts, minimum=0)
    problem, w, pieces = settled(hessian.model, problem, w, statistics=statistics, memory=memory)
    root = jax.random.key(int(generator(key).integers(2**63)))
    rho = jnp.asarray(radius, w.dtype)
    # From 0 the first step goes along the gradient, to the edge: the point that ASAM itself takes.
    starts = [jnp.zeros_like(w), *(jax.random.normal(k, w.shape, w.dtype) for k in jax.random.split(root, restarts))]
    ends = [_ascent(problem, w, scale, rho, start, steps, pieces) for start in starts]
    best, gradients = max(float(value) for value, _, _ in ends), sum(int(count) for _, count, _ in ends)
    check.finite("L(w + step)", best, "The loss overflows at that distance: take a smaller radius.")
    at_rest = all(bool(rest) for _, _, rest in ends)
    return Estimate(best, best, math.inf, 1.0, gradients, converged=at_rest)


@eqx.filter_jit
def _ascent(
    problem: Problem, w: Array, scale: Array, radius: Array, start: Array, steps: int, pieces: Pieces
) -> tuple[Array, Array, Array]:
    """(increase, gradients, whether it came to rest): a step longer by half after each success, half as long after
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
    _, value, _, length, count = jax.lax.while_loop(going, step, state)
    return value - loss(jnp.zeros_like(w)), count, length <= _REST
