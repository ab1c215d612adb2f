"""The only loop of one run: it carries a dynamics from w to its end and records on the way."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check
from steppe import when as when_
from steppe._random import seed
from steppe._result import Result, Table, columns, drawn
from steppe.dynamics._base import Dynamics
from steppe.dynamics._record import LOSS, Columns, Record, Recorder, loss_at, part
from steppe.dynamics._schedule import Schedule, Segment, segments
from steppe.kernels.path import Indices, Path, block, block_epochs
from steppe.outcome import OUTCOMES, Halt, Outcome
from steppe.problem import Problem
from steppe.until import Stop


@dataclass(frozen=True, repr=False)
class Run(Result):
    """Where a run ended (`w`), why (`outcome`), what was recorded (columns), and what it cost.

    `reached`: the loss is at most the goal. `exhausted`: the steps, epochs, time or seconds are used up. `diverged`:
    the loss at w is not finite. `stalled`: the goal cannot be reached, because no further step changes w (for a flow:
    because many steps did not lower the loss). `gradients` counts gradient evaluations, of a batch or of all examples:
    one a step for GD, two for SAM. For a flow it counts those of rejected steps too, and two for each product with
    ∇²L. Steps that are known to change nothing are not computed.

    A `Flow` that was verified ran several times, each time with finer steps: `error` is the estimated error of w, as a
    share of the way from the start; `coarser` is the run before, and `gradients` counts all of them.
    """

    w: Array
    outcome: Outcome
    records: Columns
    steps: int
    gradients: int
    error: float | None = None
    coarser: "Run | None" = None

    def table(self) -> Table:
        """What was recorded, one row a moment."""
        return columns(self.records)

    def draw(self) -> Any:
        """Everything recorded against the time of a flow or the steps of another dynamics, with its interval if it has
        one."""
        table = self.table()
        for name in ("epoch", "step") if "time" in table else ("epoch",):
            table.pop(name, None)
        return drawn(f"{self.outcome} after {self.steps:,} steps", table)


@dataclass(frozen=True)
class Progress:
    """What a live display shows. `epochs` is where the run ends, inf if that is not known."""

    step: int
    epoch: float
    epochs: float
    steps_per_second: float
    latest: dict[str, Any]


class Checkpoint(Protocol):
    """Where an unfinished run is kept; `steppe.store` has one on disk. It is time to save when `due` says so."""

    def load(self) -> dict[str, NDArray[Any]] | None: ...

    def due(self) -> bool: ...

    def save(self, arrays: dict[str, NDArray[Any]]) -> None: ...


class Pace:
    """How many steps the next call carries out, so that a call lasts about `seconds`.

    Between two calls there is time to stop, record, save and report.
    """

    def __init__(self, seconds: float):
        self.seconds, self.steps = seconds, 1

    def learn(self, done: int, seconds: float) -> None:
        """After a call that carried out `done` steps."""
        self.steps = max(1, int(min(4 * self.steps, max(1, done) * self.seconds / seconds)))


def run(
    problem: Problem,
    dynamics: Dynamics | Schedule,
    w: Any = None,
    *,
    stop: Stop | None = None,
    record: Record | None = None,
    when: when_.When | None = None,
    progress: Callable[[Progress], None] | None = None,
    checkpoint: Checkpoint | None = None,
    use_kernels: bool = True,
    key: int | Array = 0,
) -> Run:
    """Carry `dynamics` from w (default problem.w0) until `stop`; `key` decides the order of the examples.

    `record` maps names to functions of (problem, w). They are evaluated at the start, at the end and at the moments of
    `when` (default: 20 per decade of steps); without `record` the loss is recorded. A `Schedule` whose stages all have
    epochs needs no `stop`. A `Flow` also records the column `time`. The networks that `steppe.kernels` knows run on
    compiled kernels unless `use_kernels` is False: the same steps, to rounding.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: x @ w, jnp.zeros(1), jnp.ones((2, 1)), jnp.ones(2), steppe.losses.mse)
    >>> r = run(p, steppe.dynamics.GD(0.25), stop=steppe.until.loss(1e-6))
    >>> r.outcome, r.steps                                                   # the loss is 4^−steps
    ('reached', 10)
    """
    return carried(
        problem, dynamics, w, stop=stop, record=record, when=when, progress=progress, checkpoint=checkpoint,
        use_kernels=use_kernels, key=key,
    )[0]  # fmt: skip


def carried(
    problem: Problem, dynamics: Dynamics | Schedule, w: Any, *, stop: Stop | None, record: Record | None,
    when: when_.When | None = None, progress: Callable[[Progress], None] | None = None,
    checkpoint: Checkpoint | None = None, use_kernels: bool = True, key: int | Array = 0,
) -> tuple[Run, Any]:  # fmt: skip
    """What `run` returns, and the last state of the dynamics, which may remember more than w."""
    Problem.expected(problem)
    schedule = Schedule.of(dynamics)
    if not isinstance(stop, Stop) and (stop is not None or schedule.stages[-1].epochs is None):
        check.refuse("stop", "a condition of steppe.until", stop, "Pass for example steppe.until.steps(1000).")
    stop, when = stop or Stop(), when or when_.logarithmic()
    if not isinstance(when, when_.When):
        check.refuse("when", "moments of steppe.when", when, "Pass for example steppe.when.every(steps=10).")
    _check_measure(schedule, stop, when)
    for stage in schedule.stages:
        if not stage.dynamics.in_time:
            _refuse_many_rates(stage.dynamics)
    start = problem.vector(problem.w0 if w is None else w)
    problem.expect_same_function(start)
    loop = _Loop(problem, stop, when, Recorder(LOSS if record is None else record), seed(key), progress, checkpoint)
    return loop.run(segments(schedule, len(problem), stop), start, use_kernels), loop.state


def _refuse_many_rates(dynamics: Dynamics) -> None:
    """An array as a rate would be one for each coordinate of w."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(dynamics):
        if np.ndim(leaf):
            name = jax.tree_util.keystr(path[-1:], simple=True)
            remedy = "Use steppe.dynamics.run_many for a run at each rate."
            check.refuse(name, "one number", f"an array of shape {np.shape(leaf)}", remedy)


def _check_measure(schedule: Schedule, stop: Stop, when: when_.When) -> None:
    """A flow is measured in time, every other dynamics in steps and epochs."""
    last = schedule.stages[-1]
    if any(stage.dynamics.in_time for stage in schedule.stages[:-1]):
        check.refuse("dynamics", "a Schedule with a Flow as its last stage only", schedule, "Run the flow first.")
    if last.dynamics.in_time:
        if stop.epochs is not None or when.in_epochs or last.epochs:
            check.refuse("stop and when", "without epochs for a Flow", (stop, when), "Use until.time and when.times.")
    elif stop.time is not None:
        rule = "without a flow time for a dynamics in steps"
        check.refuse("stop", rule, stop, "Use until.steps or until.epochs.")
    elif when.flow_times is not None:
        check.refuse("when", "without flow times for a dynamics in steps", when, "Use when.every(steps=...).")


@dataclass(frozen=True)
class _Whole:
    """A run that came to its end before a finer one began, and the gradients of it `alone`."""

    run: Run
    alone: int

    @property
    def w(self) -> Array:
        return self.run.w

    @property
    def error(self) -> float | None:
        return self.run.error

    def arrays(self) -> dict[str, NDArray[Any]]:
        run = self.run
        counts = np.array([run.steps, run.gradients, OUTCOMES.index(run.outcome), self.alone])
        error = np.array([np.nan if run.error is None else run.error])
        records = {f"record/{name}": column for name, column in run.records.items()}
        return {"w": np.asarray(run.w), "counts": counts, "error": error} | records

    @classmethod
    def restored(cls, arrays: dict[str, NDArray[Any]]) -> "_Whole":
        steps, gradients, outcome, alone = (int(v) for v in arrays["counts"])
        error, records = float(arrays["error"][0]), part(arrays, "record/")
        known = None if math.isnan(error) else error
        return cls(Run(jnp.asarray(arrays["w"]), OUTCOMES[outcome], records, steps, gradients, known), alone)


class _Loop:
    """One run under way. What must survive a kill: `stage`, `step`, `gradients`, the state and the recorder."""

    def __init__(
        self, problem: Problem, stop: Stop, when: when_.When, recorder: Recorder, key: int,
        progress: Callable[[Progress], None] | None, checkpoint: Checkpoint | None,
    ):  # fmt: skip
        self.problem, self.stop, self.when, self.recorder, self.key = problem, stop, when, recorder, key
        self.progress, self.checkpoint = progress, checkpoint
        self.target = -math.inf if stop.loss is None else stop.loss
        self.stage = self.step = self.gradients = 0
        self.started = time.perf_counter()
        self.coarser: _Whole | None = None
        self.state: Any = None
        self.saved = None if checkpoint is None else checkpoint.load()
        if self.saved is not None:
            self.stage, self.step, self.gradients = (int(v) for v in self.saved["counts"])
            self.recorder.restore(part(self.saved, "record/"))
            if arrays := part(self.saved, "coarser/"):
                self.coarser = _Whole.restored(arrays)

    def run(self, plan: list[Segment], w: Array, use_kernels: bool) -> Run:
        last = plan[-1]
        self.end = last.epoch(int(last.last_step)) if math.isfinite(last.last_step) else math.inf
        for stage in range(self.stage, len(plan)):
            self.stage, segment = stage, plan[stage]
            dynamics = segment.stage.dynamics
            path = dynamics.path(self.problem, stop=self.stop, when=self.when, key=self.key, use_kernels=use_kernels)
            state, so_far = path.start(w), 0
            if self.saved is not None:  # it belongs to the stage it was saved in
                state, self.saved = restored_state(state, self.saved), None
                so_far = dynamics.gradients(state, self.step - segment.first_step)
            self.gradients_before = self.gradients - so_far
            state, halt = self._stage(segment, path, state)
            while (finer := path.finer(state, halt, self.coarser)) is not None:
                if path.is_whole(state, halt):
                    whole = replace(self._ended(segment, path, state, halt), coarser=None)
                    self.coarser = _Whole(whole, path.gradients(state))
                self.recorder.rewind(segment.first_step)
                self.step = segment.first_step
                state, halt = self._stage(segment, path, finer)
            w, self.state = path.position(state), state
            ends = math.isfinite(segment.last_step) and (segment is not last or self.stop.loss is None)
            if halt == Halt.STALLED and ends:
                self.step, halt = int(segment.last_step), Halt.NOT  # the remaining steps change nothing
            elif halt != Halt.NOT:
                break
        if self.coarser is not None and not path.is_whole(state, halt):
            return replace(self.coarser.run, gradients=self.gradients)  # the finer run did not come to its end
        return self._ended(segment, path, state, halt)

    def _ended(self, segment: Segment, path: Path, state: Any, halt: Halt) -> Run:
        """The run so far; its last row is that of its end."""
        w, coarser = path.position(state), self.coarser
        outcome = self._outcome(w) if halt == Halt.NOT else halt.outcome
        moment = {"step": self.step} | ({} if (t := path.time(state)) is None else {"time": t})
        if outcome != "diverged" and not moment.items() <= self.recorder.last.items():
            self.recorder(self.problem, w, self.step, segment.epoch(self.step), t)
        error, run = path.error(state, coarser), None if coarser is None else coarser.run
        return Run(w, outcome, self.recorder.columns(), self.step, self.gradients, error, run)

    def _stage(self, segment: Segment, path: Path, state: Any) -> tuple[Any, Halt]:
        """All steps of one stage."""
        pace, halt = Pace(0.2), Halt.NOT
        while self.step < segment.last_step and halt == Halt.NOT and not self._out_of_time():
            if segment.is_moment(self.when, self.step):
                w, epoch = path.position(state), segment.epoch(self.step)
                self.recorder(self.problem, w, self.step, epoch, path.time(state))
            orders, offset, left = self._orders(segment)
            moment = segment.next_moment(self.when, self.step)
            count = int(min(pace.steps, left, moment - self.step, segment.last_step - self.step))
            before = time.perf_counter()
            state, done, halt = path.advance(
                state, orders, first=self.step, offset=offset, count=count, target=self.target
            )
            seconds = time.perf_counter() - before
            pace.learn(done, seconds)
            self.step += done
            in_stage = segment.stage.dynamics.gradients(state, self.step - segment.first_step)
            self.gradients = self.gradients_before + in_stage
            for t in path.passed(state):
                if t > self.recorder.last["time"]:
                    self.recorder(self.problem, path.at(state, t), self.step, float(self.step), t)
            if halt == Halt.NOT and orders is not None and self._loss_reached(segment, path, state):
                halt = Halt.REACHED
            self._save(state, halt)
            self._report(segment, path, state, done / seconds)
        return state, halt

    def _orders(self, segment: Segment) -> tuple[Indices | None, int, float]:
        """The block of orders that holds the next step, the place of that step in it, and the steps left in it."""
        n = len(self.problem)
        if segment.per_epoch == 1:
            return None, 0, math.inf
        epoch, position = divmod(self.step - segment.first_step, segment.per_epoch)
        number, row = divmod(segment.first_epoch + epoch, block_epochs(n))
        rows_left = block_epochs(n) - row if self.stop.loss is None else 1  # the loss is checked after every epoch
        left = rows_left * segment.per_epoch - position
        return block(self.key, n, number), row * segment.per_epoch + position, left

    def _loss_reached(self, segment: Segment, path: Path, state: Any) -> bool:
        if self.stop.loss is None or (self.step - segment.first_step) % segment.per_epoch:
            return False
        return float(loss_at(self.problem, path.position(state))) <= self.stop.loss

    def _out_of_time(self) -> bool:
        return self.stop.seconds is not None and time.perf_counter() - self.started >= self.stop.seconds

    def _outcome(self, w: Array) -> Outcome:
        loss = float(loss_at(self.problem, w))
        if not math.isfinite(loss):
            return "diverged"
        return "reached" if loss <= self.target else "exhausted"

    def _save(self, state: Any, halt: Halt) -> None:
        if self.checkpoint is None or halt != Halt.NOT or not self.checkpoint.due():
            return
        arrays: dict[str, NDArray[Any]] = {"counts": np.array([self.stage, self.step, self.gradients])}
        arrays |= state_arrays(state)
        arrays |= {f"record/{name}": column for name, column in self.recorder.columns().items()}
        arrays |= {} if self.coarser is None else {f"coarser/{k}": a for k, a in self.coarser.arrays().items()}
        self.checkpoint.save(arrays)

    def _report(self, segment: Segment, path: Path, state: Any, steps_per_second: float) -> None:
        if self.progress is not None:
            # A flow knows its loss even if no loss is recorded.
            known = {} if (loss := path.loss(state)) is None else {"loss": loss}
            latest: dict[str, Any] = {**self.recorder.last, **known}
            self.progress(Progress(self.step, segment.epoch(self.step), self.end, steps_per_second, latest))


def state_arrays(state: Any) -> dict[str, NDArray[Any]]:
    """The state of a run as arrays for a checkpoint."""
    return {f"state/{i}": np.asarray(_plain(leaf)) for i, leaf in enumerate(jax.tree.leaves(state))}


def restored_state(fresh: Any, saved: dict[str, NDArray[Any]]) -> Any:
    """The state of a checkpoint, in the form of a fresh one."""
    leaves, structure = jax.tree.flatten(fresh)
    found = [saved[f"state/{i}"] for i in range(sum(name.startswith("state/") for name in saved))]
    if [np.shape(array) for array in found] != [np.shape(_plain(leaf)) for leaf in leaves]:
        remedy = "Finish the run with the version of steppe that began it, or delete the checkpoint to start again."
        check.refuse("checkpoint", "of a run as this version keeps it", sorted(saved), remedy)
    return jax.tree.unflatten(structure, [_like(leaf, array) for leaf, array in zip(leaves, found, strict=True)])


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf: Any) -> Any:
    """A leaf of a state as numbers; some optimisers of optax keep a key of jax.random."""
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _like(fresh: Any, saved: NDArray[Any]) -> Any:
    """What was saved, as the kind of leaf that it was."""
    if _is_key(fresh):
        return jax.random.wrap_key_data(jnp.asarray(saved), impl=jax.random.key_impl(fresh))
    return jnp.asarray(saved) if isinstance(fresh, Array) else saved
