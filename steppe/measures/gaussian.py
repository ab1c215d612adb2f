"""The expected increase of the loss under a Gaussian step."""

import equinox as eqx
import jax
import numpy as np
from jax import Array

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
from steppe.problems import Problem

# Draws between two looks at the interval, and the fewest that the interval is known to hold for.
_BATCH, _FEWEST = 16, 64


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

    Draws come in pairs ±g, which cancels the gradient: ½[L(w + s g) + L(w − s g)] − L(w). `matvecs` counts the
    evaluations of the loss.
    """
    rtol, delta = tolerance(rtol), 1.0 - probability(confidence)
    remedy = f"The interval takes {_FEWEST} pairs."
    max_evaluations = check.integer("max_evaluations", max_evaluations, minimum=2 * _FEWEST, remedy=remedy)
    problem, w, pieces = settled(hessian.model, problem, w, statistics=statistics, memory=memory)
    root = jax.random.key(int(generator(key).integers(2**63)))
    sample = np.empty(0)
    for count, share in looks(_FEWEST, max_evaluations // 2, delta, keep=0.8):
        while len(sample) < count:
            draws = jax.random.split(jax.random.fold_in(root, len(sample)), _BATCH)
            pairs = np.asarray(_increases(problem, w, scale, draws, pieces), dtype=float)
            check.finite("L(w + step)", pairs, "The loss overflows at that distance: take a smaller radius.")
            sample = np.concatenate([sample, pairs])
        value, lower, upper = interval(sample, share)
        converged = upper - lower <= rtol * abs(value)
        if converged:
            break
    return Estimate(value, lower, upper, confidence, 2 * len(sample) + 1, converged=converged)


@eqx.filter_jit
def _increases(problem: Problem, w: Array, scale: Array, draws: Array, pieces: Pieces) -> Array:
    def loss(v: Array) -> Array:
        return pieces.mean(problem, lambda piece: piece.loss(v))

    def pair(draw: Array) -> Array:
        step = scale * jax.random.normal(draw, w.shape, w.dtype)
        return 0.5 * (loss(w + step) + loss(w - step)) - loss(w)

    return jax.lax.map(pair, draws)
