"""The only loop: carries a dynamics from w to its end, recording on the way."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check, kernels
from steppe import when as when_
from steppe._random import seed
from steppe.dynamics._base import Dynamics
from steppe.dynamics._flow import Flow
from steppe.dynamics._flow.flow import FlowPath
from steppe.dynamics._flow.step import State as FlowState
from steppe.dynamics._generic import Generic
from steppe.dynamics._schedule import Schedule, Segment, segments
from steppe.estimate import Estimate
from steppe.kernels.path import Halt, Indices, Path, block, block_epochs
from steppe.problem import Problem
from steppe.until import Stop

# What a run writes down: named numbers at chosen moments, as columns.

Record = Mapping[str, Callable[[Problem, Array], Any]]
Columns = dict[str, NDArray[Any]]
_RESERVED = ("step", "epoch", "time")


class Recorder:
    """Collects rows. An estimate that is not exact also fills the columns `name.lower` and `name.upper`."""

    def __init__(self, record: Record):
        for name, function in record.items():
            if name in _RESERVED or not callable(function):
                remedy = f"Pass {{'trace': steppe.measures._trace}} for example; {_RESERVED} are always recorded."
                check.refuse(f"record[{name!r}]", "a function of (problem, w)", function, remedy)
        self._record = record
        self._rows: list[dict[str, Any]] = []

    @property
    def last(self) -> Mapping[str, Any]:
        return self._rows[-1] if self._rows else {}

    def __call__(self, problem: Problem, w: Array, step: int, epoch: float, time: float | None = None) -> None:
        """`time` is that of a flow; None where there is none."""
        row: dict[str, Any] = {"step": step, "epoch": epoch} | ({} if time is None else {"time": time})
        for name, function in self._record.items():
            row |= _cells(name, function(problem, w))
        self._rows.append(row)

    def columns(self) -> Columns:
        """In the order of `record`, whatever the order of the rows' names: a checkpoint does not keep it."""
        found = {name for row in self._rows for name in row}
        every = (*_RESERVED, *(name + end for name in self._record for end in ("", ".lower", ".upper")))
        names = [name for name in every if name in found]
        kind = {"step": np.int64}
        # An estimate may be exact at some moments only: its bounds there are its value.
        return {
            name: np.asarray([row.get(name, row.get(name.rsplit(".", 1)[0])) for row in self._rows], kind.get(name))
            for name in names
        }

    def restore(self, columns: Columns) -> None:
        names = list(columns)
        self._rows = [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _cells(name: str, result: Any) -> dict[str, Any]:
    if isinstance(result, Estimate):
        cells = {name: result.value}
        return cells if result.is_exact else cells | {f"{name}.lower": result.lower, f"{name}.upper": result.upper}
    array = np.asarray(result)
    return {name: array.item() if array.ndim == 0 else array}


# The only loop: carries a dynamics from w to its end, recording on the way.

Outcome = Literal["reached", "exhausted", "diverged", "stalled"]

# A call into compiled code lasts about this long: short enough to stop, record and report between two of them.
_CHUNK_SECONDS = 0.2


@dataclass(frozen=True)
class Run:
    """Where a run ended (`w`), why (`outcome`), what was recorded (columns), and what it cost.

    `reached`: the loss asked for; `exhausted`: the steps, epochs, time or seconds asked for are over; `diverged`: the
    loss at w is not finite; `stalled`: the loss asked for cannot be reached, since no further step changes w (a flow:
    since many steps did not lower it). `gradients` counts gradient evaluations, of a batch or of everything: one a
    step for GD, two for SAM, for a flow all that its steps took, rejected ones too, and two for each product with ∇²L;
    steps that are known to change nothing are not computed.
    """

    w: Array
    outcome: Outcome
    records: Columns
    steps: int
    gradients: int


@dataclass(frozen=True)
class Progress:
    """What a live display needs to know; `epochs` is where the run ends, inf if that is not known."""

    step: int
    epoch: float
    epochs: float
    steps_per_second: float
    latest: dict[str, Any]


class Checkpoint(Protocol):
    """Where an unfinished run is kept; `steppe.store` has one on disk."""

    def load(self) -> dict[str, NDArray[Any]] | None: ...

    def due(self) -> bool: ...

    def save(self, arrays: dict[str, NDArray[Any]]) -> None: ...


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

    `record` maps names to functions of (problem, w), evaluated at the moments `when` names (default: 20 a decade of
    steps), at the start and at the end; without it the loss is recorded. A `Schedule` of stages with their own epochs
    needs no `stop`. A `Flow` also records the column `time`. The networks that `steppe.kernels` knows run on
    compiled kernels unless `use_kernels` is False: the same steps, to rounding.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: x @ w, jnp.zeros(1), jnp.ones((2, 1)), jnp.ones(2), steppe.losses.mse)
    >>> r = run(p, steppe.dynamics.GD(0.25), stop=steppe.until.loss(1e-6))
    >>> r.outcome, r.steps                                                   # the loss is 4^−steps
    ('reached', 10)
    """
    if not isinstance(problem, Problem):
        check.refuse("problem", "a steppe.Problem", problem, "Build steppe.Problem(predict, params, x, y, loss).")
    schedule = Schedule.of(dynamics)
    if not isinstance(stop, Stop) and (stop is not None or schedule.stages[-1].epochs is None):
        check.refuse("stop", "a condition of steppe.until", stop, "Pass for example steppe.until.steps(1000).")
    stop, when = stop or Stop(), when or when_.logarithmic()
    _check_times(schedule, stop, when)
    loop = _Loop(problem, stop, when, Recorder(_LOSS if record is None else record), seed(key))
    loop.observe(progress, checkpoint)
    return loop.run(segments(schedule, len(problem), stop), problem.vector(problem.w0 if w is None else w), use_kernels)


def _check_times(schedule: Schedule, stop: Stop, when: when_.When) -> None:
    """A flow has times and no epochs, everything else has epochs and no times."""
    last = schedule.stages[-1].dynamics
    if not isinstance(last, Flow):
        if stop.time is not None:
            rule = "without a flow time for a dynamics in steps"
            check.refuse("stop", rule, stop, "Use until.steps or until.epochs.")
        if when.flow_times is not None:
            check.refuse("when", "without flow times for a dynamics in steps", when, "Use when.every(steps=...).")
    if any(isinstance(stage.dynamics, Flow) for stage in schedule.stages[:-1]):
        check.refuse("dynamics", "a Schedule with a Flow as its last stage only", schedule, "Run the flow first.")
    if isinstance(last, Flow) and (stop.epochs is not None or when.in_epochs or schedule.stages[-1].epochs):
        check.refuse("stop and when", "without epochs for a Flow", (stop, when), "Use until.time and when.times.")


class _Loop:
    """One run under way. What must survive a kill: `stage`, `step`, `gradients`, the state and the recorder."""

    def __init__(self, problem: Problem, stop: Stop, when: when_.When, recorder: Recorder, key: int):
        self.problem, self.stop, self.when, self.recorder, self.key = problem, stop, when, recorder, key
        self.stage = self.step = self.gradients = 0
        self.saved_state: list[Any] | None = None
        self.started = time.perf_counter()

    def observe(self, progress: Callable[[Progress], None] | None, checkpoint: Checkpoint | None) -> None:
        self.progress, self.checkpoint = progress, checkpoint
        if checkpoint is not None and (saved := checkpoint.load()) is not None:
            self.stage, self.step, self.gradients = (int(v) for v in saved["counts"])
            self.saved_state = [saved[f"state/{i}"] for i in range(sum(k.startswith("state/") for k in saved))]
            self.recorder.restore({k.removeprefix("record/"): v for k, v in saved.items() if k.startswith("record/")})

    def run(self, plan: list[Segment], w: Array, use_kernels: bool) -> Run:
        outcome: Outcome | None = None
        last = plan[-1]
        self.end = last.epoch(int(last.last_step)) if math.isfinite(last.last_step) else math.inf
        for stage in range(self.stage, len(plan)):
            self.stage, segment = stage, plan[stage]
            dynamics = segment.stage.dynamics
            path = self._path(dynamics, use_kernels)
            resumed = self.saved_state is not None
            state = self._restored(path.start(w))
            so_far = dynamics.gradients(state, self.step - segment.first_step) if resumed else 0
            self.gradients_before = self.gradients - so_far
            state, halt = self._stage(segment, path, state)
            w = path.position(state)
            ends = math.isfinite(segment.last_step) and (segment is not last or self.stop.loss is None)
            if halt == Halt.STALLED and ends:
                self.step = int(segment.last_step)  # the steps that are left change nothing
            elif halt != Halt.NOT:
                outcome = _OUTCOMES[halt]
                break
        outcome = outcome or self._outcome(w)
        moment = {"step": self.step} | ({} if (t := _time(path, state)) is None else {"time": t})
        if outcome != "diverged" and not moment.items() <= self.recorder.last.items():
            self.recorder(self.problem, w, self.step, segment.epoch(self.step), t)
        return Run(w, outcome, self.recorder.columns(), self.step, self.gradients)

    def _path(self, dynamics: Dynamics, use_kernels: bool) -> Path:
        if isinstance(dynamics, Flow):
            horizon = math.inf if self.stop.time is None else self.stop.time
            return FlowPath(self.problem, dynamics, horizon, np.asarray(self.when.flow_times or ()))
        fast = kernels.build(self.problem, dynamics.recipe(), self.key) if use_kernels else None
        return fast or Generic(self.problem, dynamics, self.key)

    def _stage(self, segment: Segment, path: Path, state: Any) -> tuple[Any, Halt]:
        """All steps of one stage."""
        chunk, halt = 1, Halt.NOT
        while self.step < segment.last_step and halt == Halt.NOT and not self._out_of_time():
            if segment.is_moment(self.when, self.step):
                w, epoch = path.position(state), segment.epoch(self.step)
                self.recorder(self.problem, w, self.step, epoch, _time(path, state))
            orders, offset, left = self._orders(segment)
            moment = segment.next_moment(self.when, self.step)
            count = int(min(chunk, left, moment - self.step, segment.last_step - self.step))
            before = time.perf_counter()
            target = -math.inf if self.stop.loss is None else self.stop.loss
            state, done, halt = path.advance(state, orders, first=self.step, offset=offset, count=count, target=target)
            seconds = time.perf_counter() - before
            chunk = max(1, int(min(4 * chunk, max(1, done) * _CHUNK_SECONDS / seconds)))
            self.step += done
            in_stage = segment.stage.dynamics.gradients(state, self.step - segment.first_step)
            self.gradients = self.gradients_before + in_stage
            if isinstance(path, FlowPath):
                self._record_times(path, state)
            if halt == Halt.NOT and orders is not None and self._loss_reached(segment, path, state):
                halt = Halt.REACHED
            self._report(segment, state, halt, done / seconds)
        return state, halt

    def _record_times(self, path: FlowPath, state: Any) -> None:
        """The times chosen that lie within the last step."""
        t0, t1 = float(state.before.t), float(state.now.t)
        for t in self.when.flow_times or ():
            if t0 < t <= t1 and t > self.recorder.last["time"]:
                self.recorder(self.problem, path.at(state, t), self.step, float(self.step), t)

    def _orders(self, segment: Segment) -> tuple[Indices | None, int, float]:
        """The block of orders that holds the next step, that step's place in it, and the steps left in it."""
        n = len(self.problem)
        if segment.per_epoch == 1:
            return None, 0, math.inf
        epoch, position = divmod(self.step - segment.first_step, segment.per_epoch)
        number, row = divmod(segment.first_epoch + epoch, block_epochs(n))
        rows_left = block_epochs(n) - row if self.stop.loss is None else 1  # the loss is looked at after every epoch
        left = rows_left * segment.per_epoch - position
        return block(self.key, n, number), row * segment.per_epoch + position, left

    def _loss_reached(self, segment: Segment, path: Path, state: Any) -> bool:
        if self.stop.loss is None or (self.step - segment.first_step) % segment.per_epoch:
            return False
        return float(_loss(self.problem, path.position(state))) <= self.stop.loss

    def _out_of_time(self) -> bool:
        return self.stop.seconds is not None and time.perf_counter() - self.started >= self.stop.seconds

    def _outcome(self, w: Array) -> Outcome:
        loss = float(_loss(self.problem, w))
        if not math.isfinite(loss):
            return "diverged"
        return "reached" if self.stop.loss is not None and loss <= self.stop.loss else "exhausted"

    def _report(self, segment: Segment, state: Any, halt: Halt, steps_per_second: float) -> None:
        if self.checkpoint is not None and halt == Halt.NOT and self.checkpoint.due():
            arrays: dict[str, NDArray[Any]] = {"counts": np.array([self.stage, self.step, self.gradients])}
            arrays |= {f"state/{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(state))}
            arrays |= {f"record/{name}": column for name, column in self.recorder.columns().items()}
            self.checkpoint.save(arrays)
        if self.progress is not None:
            # A flow knows its loss, whatever is recorded.
            known = {"loss": float(state.now.loss)} if isinstance(state, FlowState) else {}
            latest: dict[str, Any] = {**self.recorder.last, **known}
            self.progress(Progress(self.step, segment.epoch(self.step), self.end, steps_per_second, latest))

    def _restored(self, state: Any) -> Any:
        """The state of the checkpoint, in the form of a fresh one; only the stage it was saved in has one."""
        leaves, self.saved_state = self.saved_state, None
        if leaves is None:
            return state
        kinds, structure = jax.tree.flatten(state)
        if [np.shape(a) for a in leaves] != [np.shape(k) for k in kinds]:
            remedy = "Finish the run with the version of steppe that began it, or delete the checkpoint to begin anew."
            check.refuse("checkpoint", "of a run as this version keeps it", self.checkpoint, remedy)
        moved = [jnp.asarray(a) if isinstance(k, Array) else a for a, k in zip(leaves, kinds, strict=True)]
        return jax.tree.unflatten(structure, moved)


_OUTCOMES: dict[Halt, Outcome] = {
    Halt.REACHED: "reached",
    Halt.DIVERGED: "diverged",
    Halt.STALLED: "stalled",
    Halt.ENDED: "exhausted",
}
_loss = eqx.filter_jit(lambda problem, w: problem.loss(w))
_LOSS: Record = {"loss": _loss}


def _time(path: Path, state: Any) -> float | None:
    return float(state.now.t) if isinstance(path, FlowPath) else None
