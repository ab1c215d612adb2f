"""Gradient descent from one point at many rates: together in one compiled loop, or one after another."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check
from steppe.dynamics import Progress
from steppe.dynamics._run import Checkpoint, Outcome
from steppe.kernels.path import Halt
from steppe.problem import Problem
from steppe.rates._critical import Followed
from steppe.rates._descent import Descent, Lane, Moments, advance

# A call into compiled code lasts about this long, so that there is time to save and report between two of them.
_CHUNK_SECONDS = 0.5

# Parameters times examples up to which runs are carried out together: beyond it the arithmetic costs more than calling
# it, and a batch saves nothing.
_SMALL = 2e4

# A batch is filled up to one of these sizes, so that few shapes are compiled as runs end.
_SIZES = (1, 4, 16, 64)


@dataclass(frozen=True)
class Limits:
    """What ends a run: the goals, the last one for good; `steps`; and `way`, the flow's time to the last goal.

    Where `way` is known a run may take `patience` times as many steps as the flow would at its rate.
    """

    goals: tuple[float, ...]
    steps: int = 1_000_000
    way: float | None = None
    patience: float = 10.0

    def most(self, lr: float) -> int:
        return self.steps if self.way is None else min(self.steps, int(np.ceil(self.patience * self.way / lr)))

    def part(self, lr: float) -> float:
        """The part of the way that a step goes."""
        return 0.0 if self.way is None else lr / self.way


class Runner(Protocol):
    """Carries out runs and knows how those that have ended came out; `together`: many at a time."""

    @property
    def together(self) -> bool: ...

    def outcomes(self) -> dict[float, Outcome]: ...

    def run(self, rates: Sequence[float]) -> tuple[Descent, ...]: ...


class Descents:
    """All runs of a sweep, finished or not; `run(rates)` carries out those that are missing, and saves on the way."""

    def __init__(
        self, problem: Problem, w: Array, limits: Limits, *, share: float, together: bool | None, key: int,
        checkpoint: Checkpoint | None = None, progress: Callable[[Progress], None] | None = None,
    ):  # fmt: skip
        self.problem, self.w, self.limits = problem, w, limits
        self.share = check.number("share", share, above=0.0, remedy="Pass for example share=0.3.")
        self.together = len(problem) * problem.w0.size <= _SMALL if together is None else together
        self.checkpoint, self.progress = checkpoint, progress
        # Measured once for all: every run starts here.
        self.first_estimate, self.first = Followed.fresh(problem, key=key).measure(problem, w)
        self.lanes: dict[float, Lane] = {}
        self.extra: dict[str, NDArray[Any]] = {}
        self._load()

    def run(self, rates: Sequence[float]) -> tuple[Descent, ...]:
        missing = [self._lane(lr) for lr in rates]
        groups = [missing] if self.together else [[lane] for lane in missing]
        for group in groups:
            self._group([lane for lane in group if lane.outcome is None])
        return tuple(self.lanes[lr].finished() for lr in rates)

    def outcomes(self) -> dict[float, Outcome]:
        """Of the runs that have ended."""
        return {lr: lane.outcome for lr, lane in self.lanes.items() if lane.outcome is not None}

    def _lane(self, lr: float) -> Lane:
        if lr not in self.lanes:
            limits = self.limits
            self.lanes[lr] = Lane(
                lr, self.w, self.first, Moments(self.share), goals=limits.goals, most=limits.most(lr),
                way=limits.part(lr),
            )  # fmt: skip
        return self.lanes[lr]

    def _group(self, lanes: list[Lane]) -> None:
        chunk = 1
        while lanes:
            for lane in lanes:
                lane.record(self.problem)
            lanes = [lane for lane in lanes if lane.outcome is None]
            if not lanes:
                return
            count = min(chunk, *(lane.pause - lane.step for lane in lanes))
            before = time.perf_counter()
            filled = lanes + [lanes[0]] * (_size(len(lanes)) - len(lanes))
            # A target that is met at once: what fills the batch up takes no step.
            targets = np.array([lane.target if k < len(lanes) else np.inf for k, lane in enumerate(filled)])
            # In numpy: JAX would compile a program for each size of the batch.
            rates, points = np.array([lane.lr for lane in filled]), np.stack([lane.w for lane in filled])
            rows, done, halts = advance(self.problem, rates, points, count=count, targets=targets)
            seconds = time.perf_counter() - before
            chunk = max(1, int(min(4 * chunk, count * _CHUNK_SECONDS / seconds)))
            for k, lane in enumerate(lanes):
                lane.moved(self.problem, jnp.asarray(rows[k]), int(done[k]), Halt(int(halts[k])))
            lanes = [lane for lane in lanes if lane.outcome is None]
            self._report(lanes, count / seconds)

    def _report(self, lanes: list[Lane], steps_per_second: float) -> None:
        self.save(unless_due=True)
        if self.progress is not None and lanes:
            lane = lanes[-1]
            latest = {"loss": lane.rows[-1][1], "sharpness": lane.sharpness, "lr": lane.lr} if lane.rows else {}
            self.progress(Progress(lane.step, float(lane.step), float(lane.most), steps_per_second, latest))

    def keep(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Something else to be saved with the runs, at once: what led up to them."""
        self.extra = arrays
        self.save()

    def save(self, *, unless_due: bool = False) -> None:
        if self.checkpoint is None or (unless_due and not self.checkpoint.due()):
            return
        arrays = {f"extra/{name}": array for name, array in self.extra.items()}
        arrays["rates"] = np.array(list(self.lanes), dtype=float)
        for k, lane in enumerate(self.lanes.values()):
            arrays |= {f"{k}/{name}": array for name, array in lane.arrays().items()}
        self.checkpoint.save(arrays)

    def _load(self) -> None:
        saved = None if self.checkpoint is None else self.checkpoint.load()
        if saved is None or "rates" not in saved:  # there is one of the flow before the runs began
            return
        self.extra = {name.removeprefix("extra/"): a for name, a in saved.items() if name.startswith("extra/")}
        for k, lr in enumerate(saved["rates"].tolist()):
            own = {name.removeprefix(f"{k}/"): a for name, a in saved.items() if name.startswith(f"{k}/")}
            self._lane(lr).restore(own)


def _size(count: int) -> int:
    return next((size for size in _SIZES if size >= count), count)
