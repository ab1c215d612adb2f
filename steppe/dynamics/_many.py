"""Hundreds of runs of a small problem in one compiled call: over rates, over starts, over keys."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check
from steppe._random import seed
from steppe.dynamics import _generic as generic
from steppe.dynamics._base import Dynamics
from steppe.kernels.path import Halt
from steppe.problem import Problem

_OUTCOMES = {Halt.NOT: "exhausted", Halt.REACHED: "reached", Halt.DIVERGED: "diverged", Halt.STALLED: "stalled"}


@dataclass(frozen=True)
class Runs:
    """Where each run ended (`w`, one row a run), why (`outcome`, as in `steppe.Run`), after how many `steps`.

    `path` (runs, moments, parameters) holds w at the moments asked for; a run that ended before stays where it ended.
    """

    w: NDArray[Any]
    outcome: NDArray[np.str_]
    steps: NDArray[np.int64]
    path: NDArray[Any]

    def ended(self, outcome: str) -> NDArray[np.bool_]:
        return np.asarray(self.outcome == outcome)


def run_many(
    problem: Problem,
    dynamics: Dynamics,
    w: Any = None,
    *,
    steps: int,
    loss: float | None = None,
    moments: Sequence[int] = (),
    key: int | Array | Sequence[int | Array] = 0,
) -> Runs:
    """Full-batch runs that differ in a rate, in the start or in the key, each as `steppe.run` would carry it out.

    Whatever has a leading axis of k entries makes k runs: an array of rates in `dynamics`, rows of `w`, a sequence
    of keys. The rest is shared, the same random numbers included where `key` is one number. A run ends at `loss`,
    at a loss that is not finite, where no step changes w, or after `steps`.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: w * x, jnp.array([1.0]), jnp.ones(1), jnp.zeros(1), steppe.losses.half_mse)
    >>> r = run_many(p, steppe.dynamics.GD(jnp.array([0.5, 1.0, 3.0])), steps=10_000, loss=1e-6)
    >>> r.outcome.tolist(), r.steps[:2].tolist()                    # w is halved, is 0 at once, is doubled
    (['reached', 'reached', 'diverged'], [10, 1])
    """
    if dynamics.batch_size is not None and dynamics.batch_size < len(problem):
        check.refuse("dynamics", "of full batches", dynamics.batch_size, "Use steppe.run for mini-batches.")
    steps = check.integer("steps", steps, minimum=0)
    marks = sorted(check.integer("moments", m, minimum=0) for m in moments)
    if marks and marks[-1] > steps:
        check.refuse("moments", f"at most steps = {steps}", marks[-1], "Ask for earlier moments or more steps.")
    starts = jnp.asarray(problem.w0 if w is None else w, problem.w0.dtype)
    if starts.shape[-1:] != problem.w0.shape or starts.ndim > 2:
        check.refuse("w", f"one row of {problem.w0.size} a run", starts.shape, "Stack starts like problem.w0.")
    keys = _keys(key)
    k = _count(dynamics, starts, keys)
    ends = np.array([*marks, steps])
    firsts, counts = jnp.asarray(np.append(0, ends[:-1])), jnp.asarray(np.diff(ends, prepend=0))
    target = jnp.asarray(-np.inf if loss is None else check.number("loss", loss))
    starts = jnp.broadcast_to(starts, (k, problem.w0.size))
    w, halt, done, path = _many(problem, dynamics, starts, keys, firsts, counts, target)
    outcome = np.array([_OUTCOMES[Halt(int(h))] for h in np.asarray(halt)])
    return Runs(np.asarray(w), outcome, np.asarray(done), np.asarray(path)[:-1].transpose(1, 0, 2))


@eqx.filter_jit
def _many(
    problem: Problem, dynamics: Dynamics, starts: Array, keys: Array, firsts: Array, counts: Array, target: Array
) -> tuple[Array, Array, Array, Array]:
    """w, halts and steps at the end, and w after each leg: from step firsts[i] on, counts[i] steps."""
    axes = jax.tree.map(lambda leaf: 0 if np.ndim(leaf) else None, dynamics)
    position = jax.vmap(dynamics.position)

    def leg(carry: tuple[Any, Array, Array], span: tuple[Array, Array]) -> tuple[tuple[Any, Array, Array], Array]:
        state, done, halt = carry

        def one(dynamics: Dynamics, state: Any, key: Array) -> tuple[Any, Array, Array]:
            first, count = span
            return generic.advance(problem, dynamics, state, None, key, first, first, count, target)

        # An ended run ends again before its next step: the loss that ended it is still there.
        state, more, now = jax.vmap(one, in_axes=(axes, 0, 0 if keys.ndim else None))(dynamics, state, keys)
        return (state, done + more, jnp.where(halt == Halt.NOT, now, halt)), position(state)

    state = jax.vmap(lambda w: dynamics.start(problem, w))(starts)
    none = jnp.zeros(len(starts), dtype=jnp.int32)
    (state, done, halt), path = jax.lax.scan(leg, (state, none.astype(counts.dtype), none), (firsts, counts))
    w = position(state)
    loss = jax.vmap(problem.loss)(w)
    # The budget of steps may end exactly where the loss is reached or lost.
    halt = jnp.where(loss <= target, Halt.REACHED, halt)
    return w, jnp.where(jnp.isfinite(loss), halt, Halt.DIVERGED), done, path


def _keys(key: Any) -> Array:
    """One key, or an array of as many as there are in a list. Two whole numbers of 32 bits may be one key."""
    array = isinstance(key, Array | np.ndarray)
    several = key.ndim > (1 if key.dtype == np.uint32 else 0) if array else isinstance(key, list | tuple | range)
    return jnp.stack([jax.random.key(seed(one)) for one in key]) if several else jax.random.key(seed(key))


def _count(dynamics: Dynamics, starts: Array, keys: Array) -> int:
    sizes = {len(leaf) for leaf in jax.tree.leaves(dynamics) if np.ndim(leaf)}
    sizes |= {len(starts)} if starts.ndim == 2 else set()
    sizes |= {len(keys)} if keys.ndim else set()
    if len(sizes) > 1 or any(np.ndim(leaf) > 1 for leaf in jax.tree.leaves(dynamics)):
        check.refuse("dynamics, w and key", "of one number of runs", sorted(sizes), "Give each k entries, or one.")
    return sizes.pop() if sizes else 1
