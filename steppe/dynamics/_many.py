"""Many runs at once: one engine for every way to compile them, and hundreds of runs of a small problem together."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check
from steppe import when as when_
from steppe._random import seed
from steppe._result import Result, Table, columns, panel, picture
from steppe.dynamics._base import Dynamics, many_steps
from steppe.dynamics._record import Columns, Record, Recorder, part
from steppe.dynamics._run import Checkpoint, Pace, Progress, restored_state, state_arrays
from steppe.dynamics._schedule import Schedule, Segment, segments
from steppe.outcome import Halt
from steppe.problem import Problem
from steppe.until import Stop


class Batch(Protocol):
    """Many runs under way. It knows how their steps are compiled, when they pause, and what they record."""

    def under_way(self) -> bool:
        """Whether a run has not ended."""
        ...

    def advance(self) -> int:
        """One call into compiled code; returns how many steps it carried out."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that the remaining steps and the result depend on."""
        ...

    def progress(self, steps_per_second: float) -> Progress: ...


def carry(
    batch: Batch,
    *,
    checkpoint: Checkpoint | None = None,
    progress: Callable[[Progress], None] | None = None,
    seconds: float | None = None,
) -> None:
    """The engine of many runs: advances the batch until all its runs have ended, or until `seconds` have passed."""
    started = time.perf_counter()
    while batch.under_way():
        before = time.perf_counter()
        if seconds is not None and before - started >= seconds:
            return
        done = batch.advance()
        speed = done / (time.perf_counter() - before)
        if checkpoint is not None and checkpoint.due():
            checkpoint.save(batch.arrays())
        if progress is not None:
            progress(batch.progress(speed))


@dataclass(frozen=True, repr=False)
class Runs(Result):
    """Where each run ended (`w`, one row a run), why (`outcome`, as in `steppe.Run`), after how many `steps`.

    `records` holds one array a name, with one row a run and one column for each of `moments`. A run that ended before
    a moment is recorded there as it ended.
    """

    w: NDArray[Any]
    outcome: NDArray[np.str_]
    steps: NDArray[np.int64]
    moments: NDArray[np.int64]
    records: Columns

    def ended(self, outcome: str) -> NDArray[np.bool_]:
        return np.asarray(self.outcome == outcome)

    def table(self) -> Table:
        """One row a run, or, if something was recorded, one row a run and moment."""
        k, most = len(self.w), max(1, len(self.moments))
        table = {"run": np.arange(k), "outcome": self.outcome, "steps": self.steps}
        table = {name: np.repeat(column, most) for name, column in table.items()}
        if not self.records:
            return table
        recorded = {name: column.reshape(k * most, *column.shape[2:]) for name, column in self.records.items()}
        return table | {"moment": np.tile(self.moments, k)} | columns(recorded)

    def draw(self) -> Any:
        """Everything recorded against the steps, one line a run; without records, the steps of each run."""
        k = len(self.w)
        panels = [
            panel("step", self.moments, name, {f"run {i}": row for i, row in enumerate(column)})
            for name, column in self.records.items()
            if column.ndim == 2
        ] or [panel("run", np.arange(k), "steps", {"": self.steps}, kind="points")]
        reached = int(self.ended("reached").sum())
        return picture(f"{k:,} runs, {reached:,} reached", panels)


def run_many(
    problem: Problem,
    dynamics: Dynamics,
    w: Any = None,
    *,
    stop: Stop,
    record: Record | None = None,
    when: when_.When | None = None,
    progress: Callable[[Progress], None] | None = None,
    checkpoint: Checkpoint | None = None,
    key: int | Array | Sequence[int | Array] = 0,
) -> Runs:
    """Full-batch runs that differ in a rate, in the start or in the key, each as `steppe.run` would carry it out.

    Whatever has a leading axis of k entries makes k runs: an array of rates in `dynamics`, rows of `w`, a sequence
    of keys. All runs share the rest; with one key they share the random numbers too. A run ends where `stop` says,
    at a loss that is not finite, and where a step does not change w. `record` and `when` are those of `steppe.run`;
    without `record` nothing is recorded.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: w * x, jnp.array([1.0]), jnp.ones(1), jnp.zeros(1), steppe.losses.half_mse)
    >>> stop = steppe.until.loss(1e-6) | steppe.until.steps(10_000)
    >>> r = run_many(p, steppe.dynamics.GD(jnp.array([0.5, 1.0, 3.0])), stop=stop)
    >>> r.outcome.tolist(), r.steps[:2].tolist()                    # w is halved, is 0 at once, is doubled
    (['reached', 'reached', 'diverged'], [10, 1])
    """
    Problem.expected(problem)
    if not isinstance(dynamics, Dynamics) or dynamics.in_time:
        check.refuse(
            "dynamics", "a dynamics in steps", dynamics, "Pass for example GD(0.01); run a Flow by steppe.run."
        )
    if dynamics.batch_size is not None and dynamics.batch_size < len(problem):
        check.refuse("dynamics", "of full batches", dynamics.batch_size, "Use steppe.run for mini-batches.")
    if not isinstance(stop, Stop) or stop.time is not None:
        check.refuse("stop", "a condition of steppe.until other than time", stop, "Pass for example until.steps(1000).")
    when = when or when_.logarithmic()
    if not isinstance(when, when_.When):
        check.refuse("when", "moments of steppe.when", when, "Pass for example steppe.when.every(steps=10).")
    if when.flow_times is not None:
        check.refuse("when", "without flow times for a dynamics in steps", when, "Use when.every(steps=...).")
    starts = jnp.asarray(check.converted("w", problem.w0 if w is None else w, problem.w0.dtype))
    if starts.shape[-1:] != problem.w0.shape or starts.ndim > 2:
        check.refuse("w", f"one row of {problem.w0.size} a run", starts.shape, "Stack starts like problem.w0.")
    problem.expect_same_function(problem.w0)
    keys = _keys(key)
    starts = jnp.broadcast_to(starts, (_count(dynamics, starts, keys), problem.w0.size))
    (segment,) = segments(Schedule.of(dynamics), len(problem), stop)
    saved = None if checkpoint is None else checkpoint.load()
    runs = _Vectorised(problem, dynamics, starts, keys, stop.loss, segment, record, when, saved)
    carry(runs, checkpoint=checkpoint, progress=progress, seconds=stop.seconds)
    return runs.finished()


class _Vectorised:
    """A `Batch` that JAX carries out as one: all runs that have not ended are at the same step."""

    def __init__(
        self, problem: Problem, dynamics: Dynamics, starts: Array, keys: Array, loss: float | None, segment: Segment,
        record: Record | None, when: when_.When, saved: dict[str, NDArray[Any]] | None,
    ):  # fmt: skip
        self.problem, self.dynamics, self.keys = problem, dynamics, keys
        self.segment, self.when = segment, when
        self.target = jnp.asarray(-np.inf if loss is None else loss)
        self.state = _start(problem, dynamics, starts)
        self.step, self.pace = 0, Pace(0.2)
        self.steps, self.halt = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64)
        self.recorders = None if record is None else [Recorder(record) for _ in starts]
        if saved is None:
            self._record()
        else:
            self._restore(saved)

    def under_way(self) -> bool:
        return self.step < self.segment.last_step and bool((self.halt == Halt.NOT).any())

    def advance(self) -> int:
        moment = math.inf if self.recorders is None else self.segment.next_moment(self.when, self.step)
        count = int(min(self.pace.steps, moment - self.step, self.segment.last_step - self.step))
        going = self.halt == Halt.NOT
        before = time.perf_counter()
        first, most = jnp.asarray(self.step), jnp.asarray(count)
        self.state, done, halt = _advance(
            self.problem, self.dynamics, self.state, self.keys, jnp.asarray(going), first, most, self.target
        )
        self.steps += np.asarray(done)
        self.halt = np.where(going, np.asarray(halt), self.halt)
        self.pace.learn(count, time.perf_counter() - before)
        self.step += count
        if self.step == moment:
            self._record()
        return int(done.sum())

    def _record(self) -> None:
        if self.recorders is not None and self.recorders[0].last.get("step") != self.step:
            epoch, rows = self.segment.epoch(self.step), np.asarray(_positions(self.dynamics, self.state))
            for recorder, row in zip(self.recorders, rows, strict=True):
                recorder(self.problem, jnp.asarray(row), self.step, epoch)

    def _columns(self) -> Columns:
        columns = [recorder.columns() for recorder in self.recorders or ()]
        return {name: np.stack([c[name] for c in columns]) for name in (columns[0] if columns else ())}

    def arrays(self) -> dict[str, NDArray[Any]]:
        kept = {"step": np.array([self.step]), "steps": self.steps, "halt": self.halt} | state_arrays(self.state)
        return kept | {f"record/{name}": column for name, column in self._columns().items()}

    def _restore(self, saved: dict[str, NDArray[Any]]) -> None:
        self.state = restored_state(self.state, saved)
        self.step, self.steps, self.halt = int(saved["step"][0]), np.array(saved["steps"]), np.array(saved["halt"])
        for k, recorder in enumerate(self.recorders or ()):
            recorder.restore({name: column[k] for name, column in part(saved, "record/").items()})

    def progress(self, steps_per_second: float) -> Progress:
        end = self.segment.last_step
        end = self.segment.epoch(int(end)) if math.isfinite(end) else math.inf
        latest = {"ended": int((self.halt != Halt.NOT).sum())}
        return Progress(self.step, self.segment.epoch(self.step), end, steps_per_second, latest)

    def finished(self) -> Runs:
        w, losses = _ends(self.problem, self.dynamics, self.state)
        # The steps may be used up exactly where the loss is reached or lost.
        halt = np.where(losses <= np.asarray(self.target), Halt.REACHED, self.halt)
        halt = np.where(np.isfinite(losses), halt, Halt.DIVERGED)
        ended = math.isfinite(self.segment.last_step) and (self.halt != Halt.NOT).all()
        while ended and self.recorders and self.step < self.segment.last_step:  # the remaining steps change nothing
            self.step = int(min(self.segment.next_moment(self.when, self.step), self.segment.last_step))
            self._record()
        self._record()
        columns = self._columns()
        moments = columns.pop("step", np.zeros((1, 0), np.int64))[0]
        columns.pop("epoch", None)
        outcome = np.array([Halt(int(h)).outcome for h in halt])
        return Runs(np.asarray(w), outcome, self.steps, moments, columns)


@eqx.filter_jit
def _start(problem: Problem, dynamics: Dynamics, starts: Array) -> Any:
    return jax.vmap(lambda w: dynamics.start(problem, w))(starts)


@eqx.filter_jit
def _positions(dynamics: Dynamics, state: Any) -> Array:
    return jax.vmap(dynamics.position)(state)


@eqx.filter_jit
def _advance(
    problem: Problem, dynamics: Dynamics, state: Any, keys: Array, going: Array, first: Array, count: Array,
    target: Array,
) -> tuple[Any, Array, Array]:  # fmt: skip
    """`count` steps from step `first` of every run that is `going`: the states, the steps done and the halts."""
    axes = jax.tree.map(lambda leaf: 0 if np.ndim(leaf) else None, dynamics)

    def one(dynamics: Dynamics, state: Any, key: Array, going: Array) -> tuple[Any, Array, Array]:
        return many_steps(problem, dynamics, state, None, key, first, first, jnp.where(going, count, 0), target)

    return jax.vmap(one, in_axes=(axes, 0, 0 if keys.ndim else None, 0))(dynamics, state, keys, going)


@eqx.filter_jit
def _ends(problem: Problem, dynamics: Dynamics, state: Any) -> tuple[Array, Array]:
    w = jax.vmap(dynamics.position)(state)
    return w, jax.vmap(problem.loss)(w)


def _keys(key: Any) -> Array:
    """One key, or an array with one key for each entry of a list. Two whole numbers of 32 bits may be one key."""
    array = isinstance(key, Array | np.ndarray)
    several = key.ndim > (1 if key.dtype == np.uint32 else 0) if array else isinstance(key, list | tuple | range)
    return jnp.stack([jax.random.key(seed(one)) for one in key]) if several else jax.random.key(seed(key))


def _count(dynamics: Dynamics, starts: Array, keys: Array) -> int:
    sizes = {len(leaf) for leaf in jax.tree.leaves(dynamics) if np.ndim(leaf)}
    sizes |= {len(starts)} if starts.ndim == 2 else set()
    sizes |= {len(keys)} if keys.ndim else set()
    if len(sizes) > 1 or any(np.ndim(leaf) > 1 for leaf in jax.tree.leaves(dynamics)):
        check.refuse("dynamics, w and key", "of the same number of runs", sorted(sizes), "Give each k entries, or one.")
    return sizes.pop() if sizes else 1
