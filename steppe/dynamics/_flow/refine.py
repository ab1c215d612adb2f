"""Whole runs of a flow, each finer than the last, until two of them agree.

At a kink the gradient jumps. No error of a step tells what becomes of it: a neuron that begins to fire for one example,
or does not, can part two runs for good. So a flow whose equations have kinks runs twice, and again while the two ends
differ by too much. The error of a run at kinks is inversely proportional to its gradients, whatever the method: with ρ
the ratio of the gradients of the coarse and the fine run, the error of the fine one is about ρ times their distance.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import jax
from jax import Array

from steppe import losses
from steppe._same import shaped
from steppe.curvature._equations import sites
from steppe.dynamics._flow.step import State
from steppe.problem import Problem

# The first run is coarser by this factor than rtol, and so is a run with RKC2 than the next one if no error is known.
FIRST = 3.0

# However fine the second run, its error counts as LEAST of the distance: two runs can part for good.
LEAST = 1 / 3

# A run is good enough where its error counts as at most ALLOWED of rtol. It counts as more than it is: the true error
# was 0.06 to 0.4 of it on the first networks looked at. The next run is at least FEWEST and at most MOST times finer,
# and aims at AIM of rtol.
ALLOWED, FEWEST, MOST, AIM = 2.0, 2.0, 3.0, 1.4

# Kinks rule a flow once steps across them took more than SOME gradients, and more than SHARE of ∫ρ dt, with ρ = λ_max.
# Then steps of α/ρ that take one gradient each are cheapest; PLAIN is α of their first run. The second is SECOND times
# finer: runs at ¾, ⅜ and 3/16 were seen to agree where all finer ones were 3.6% of the way from them.
SOME, SHARE, PLAIN, SECOND = 32, 0.25, 0.75, 8.0

# No run is finer than this: 1/FINEST gradients for each 1/ρ, and FINEST of rtol.
FINEST_PLAIN, FINEST = 1 / 256, 1 / 30


class Course(NamedTuple):
    """A run of a flow: where all runs begin, its rtol (RKC2) or α (plain steps), and the gradients of those before."""

    state: State
    begin: Array
    fineness: Array
    plain: Array
    spent: Array


def has_kinks(problem: Problem) -> bool:
    """Whether the equations of the network, or of a loss that is not ours, have kinks.

    >>> import jax.numpy as jnp, steppe
    >>> from steppe.problem import Problem
    >>> net = lambda f: Problem(f, jnp.ones(1), jnp.ones(2), jnp.ones(2), steppe.losses.half_mse)
    >>> has_kinks(net(lambda w, x: jnp.maximum(w * x, 0))), has_kinks(net(lambda w, x: jnp.tanh(w * x)))
    (True, False)
    """
    leaves, structure = jax.tree.flatten(problem)
    return _has_kinks(structure, tuple((a.shape, a.dtype) for a in leaves))


@lru_cache(maxsize=64)
def _has_kinks(structure: Any, shapes: tuple[tuple[tuple[int, ...], Any], ...]) -> bool:
    """For all problems of one structure and shape: their equations are the same."""
    found: list[bool] = []

    def look(*leaves: Array) -> Array:
        problem = jax.tree.unflatten(structure, leaves)
        value = problem.predictions if losses.ours(problem.loss_function) else problem.loss
        found.append(bool(sites(value, problem.w0)))
        return problem.w0

    jax.eval_shape(look, *(shaped(*shape) for shape in shapes))
    return any(found)


def ruled_by_kinks(state: State) -> Array:
    return (state.at_kinks > SOME) & (state.at_kinks > SHARE * state.waves)


def own_error(distance: float, gradients: int, gradients_before: int, error_before: float | None = None) -> float:
    """The error of a run from its distance to the one before, as shares of the way.

    Two ends may be close by chance, so that LEAST of the error before counts as a distance too.
    """
    ratio = min(1.0, max(gradients_before / gradients, LEAST))
    return ratio * max(distance, LEAST * (error_before or 0.0))


def finer(fineness: float, rtol: float, error: float | None, *, plain: bool, least: float) -> float | None:
    """The rtol or α of the next run; None if the last one is good enough, or none can be finer."""
    if error is not None and error <= ALLOWED * rtol:
        return None
    unknown = SECOND if plain else FIRST
    factor = unknown if error is None else min(max(error / (AIM * rtol), FEWEST), MOST)
    floor = FINEST_PLAIN if plain else max(FINEST * rtol, least)
    return max(fineness / factor, floor) if fineness > 1.001 * floor else None
