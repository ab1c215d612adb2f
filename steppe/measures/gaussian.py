"""The expected increase of the loss under a Gaussian step."""

from contextlib import nullcontext
from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check
from steppe.estimate import Estimate
from steppe.linalg.arguments import probability, tolerance
from steppe.linalg.spread import looks
from steppe.measures.expectation import interval
from steppe.measures.operators.curvature import settled
from steppe.measures.operators.hessian import hessian
from steppe.measures.operators.pieces import Pieces
from steppe.measures.operators.statistics import Statistics
from steppe.measures.randomness import Key, generator
from steppe.measures.rounding import in_double, rounding
from steppe.problems import Problem

# Draws between two looks at the interval, and the fewest that the interval is known to hold for.
_BATCH, _FEWEST = 16, 64
# Draws whose rounding is looked at, and the share of the width asked for that it may take up in float32.
_ROUNDED, _SHARE = 8, 0.1


def expected_increase(
    problem: Problem,
    w: Array,
    scale: Array,
    *,
    rtol: float,
    confidence: float,
    max_evaluations: int,
    statistics: Statistics,
    memory: float,
    key: Key,
) -> Estimate:
    """E L(w + scale ⊙ g) − L(w), g standard normal, to an interval of relative width rtol.

    Draws come in pairs ±g, which cancels the gradient: ½[L(w + s g) + L(w − s g)] − L(w). What rounding may do to that
    difference is part of the interval; where a few draws show it to be too much, the others are taken in float64.
    `matvecs` counts the evaluations of the loss.
    """
    rtol, delta = tolerance(rtol), 1.0 - probability(confidence)
    remedy = f"The interval takes {_FEWEST} pairs."
    max_evaluations = check.integer("max_evaluations", max_evaluations, minimum=2 * _FEWEST, remedy=remedy)
    root = jax.random.key(int(generator(key).integers(2**63)))

    def at(problem: Problem, w: Array) -> _Increase:
        problem, w, pieces = settled(hessian.model, problem, w, statistics=statistics, memory=memory)
        return _Increase(problem, w, jnp.asarray(np.asarray(scale), w.dtype), pieces)

    def sampled(increase: _Increase) -> Estimate:
        return _sampled(increase, rtol=rtol, delta=delta, max_evaluations=max_evaluations, key=root)

    increase = at(problem, w)
    if problem.w0.dtype == np.float64:
        return sampled(increase)
    # Draws of their own: the sample does not know what they decide.
    trial = jax.random.fold_in(root, max_evaluations)
    too_much = 2.0 * increase.rounding(trial) > _SHARE * rtol * abs(increase.pairs(trial).mean())
    with jax.enable_x64(True) if too_much else nullcontext():
        wide = in_double(problem, increase.w) if too_much else None
        found = sampled(increase if wide is None else at(*wide))
    return replace(found, matvecs=found.matvecs + 2 * _BATCH)


class _Increase(NamedTuple):
    """L(w + scale ⊙ g) − L(w), for batches of draws."""

    problem: Problem
    w: Array
    scale: Array
    pieces: Pieces

    def pairs(self, key: Array) -> NDArray[np.float64]:
        pairs = np.asarray(_increases(*self, jax.random.split(key, _BATCH)), dtype=float)
        check.finite("L(w + step)", pairs, "The loss overflows at that distance: take a smaller radius.")
        return pairs

    def rounding(self, key: Array) -> float:
        return rounding(self.problem, self.w, self.pieces, _steps(self.scale, key))


def _sampled(increase: _Increase, *, rtol: float, delta: float, max_evaluations: int, key: Array) -> Estimate:
    sample, error = np.empty(0), 0.0
    for count, share in looks(_FEWEST, max_evaluations // 2, delta, keep=0.8):
        while len(sample) < count:
            pairs = increase.pairs(jax.random.fold_in(key, len(sample)))
            error = error if len(sample) else increase.rounding(key)
            sample = np.concatenate([sample, pairs])
        value, lower, upper = interval(sample, share)
        # Closer than the rounding no further draw can bring the bounds.
        if upper - lower <= max(rtol * abs(value) - 2.0 * error, error):
            break
    lower, upper = lower - error, upper + error
    converged = upper - lower <= rtol * abs(value)
    return Estimate(value, lower, upper, 1.0 - delta, 2 * len(sample) + 1, converged=converged)


@jax.jit
def _steps(scale: Array, key: Array) -> Array:
    return scale[None] * jax.random.normal(key, (_ROUNDED, scale.size), scale.dtype)


@eqx.filter_jit
def _increases(problem: Problem, w: Array, scale: Array, pieces: Pieces, draws: Array) -> Array:
    def loss(v: Array) -> Array:
        return pieces.mean(problem, lambda piece: piece.loss(v))

    def pair(draw: Array) -> Array:
        step = scale * jax.random.normal(draw, w.shape, w.dtype)
        return 0.5 * (loss(w + step) + loss(w - step)) - loss(w)

    return jax.lax.map(pair, draws)
