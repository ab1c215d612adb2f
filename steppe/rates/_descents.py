"""Gradient descent from one point at many rates: together in one compiled call, or one after another."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check
from steppe.dynamics import Checkpoint, Progress
from steppe.dynamics._many import carry
from steppe.dynamics._record import part
from steppe.dynamics._run import Pace
from steppe.outcome import Halt, Outcome
from steppe.problem import Problem
from steppe.rates._critical import Followed
from steppe.rates._descent import Descent, Lane, Moments, advance

# A call into compiled code lasts about this long.
_CALL_SECONDS = 0.5

# Runs are carried out together up to this product of parameters and examples. Above it the arithmetic of a call costs
# more than the call itself, and a batch saves nothing.
_SMALL = 2e4

# A batch is filled up to one of these sizes, so that few shapes are compiled as runs end.
_SIZES = (1, 4, 16, 64)


@dataclass(frozen=True)
class Limits:
    """What ends a run: the last of its goals, or its last step.

    A run takes at most `steps` steps. Where `way`, the time of the flow to the last goal, is known, a run at the rate η
    takes at most patience · way/η steps.
    """

    goals: tuple[float, ...]
    steps: int = 1_000_000
    way: float | None = None
    patience: float = 10.0

    def most(self, lr: float) -> int:
        return self.steps if self.way is None else min(self.steps, int(np.ceil(self.patience * self.way / lr)))

    def part(self, lr: float) -> float:
        """The share of the flow's time that one step covers."""
        return 0.0 if self.way is None else lr / self.way


class Runner(Protocol):
    """Carries out runs and knows the outcomes of those that have ended; `together` says whether many run at a time."""

    @property
    def together(self) -> bool: ...

    def outcomes(self) -> dict[float, Outcome]: ...

    def run(self, rates: Sequence[float]) -> tuple[Descent, ...]: ...


class Descents:
    """All runs of a sweep, finished or not. `run(rates)` carries out those that are missing, and saves on the way."""

    def __init__(
        self, problem: Problem, w: Array, limits: Limits, *, share: float, together: bool | None, key: int,
        checkpoint: Checkpoint | None = None, progress: Callable[[Progress], None] | None = None,
    ):  # fmt: skip
        self.problem, self.w, self.limits = problem, w, limits
        self.share = check.number("share", share, above=0.0, remedy="Pass for example share=0.3.")
        self.together = len(problem) * problem.w0.size <= _SMALL if together is None else together
        self.checkpoint, self.progress = checkpoint, progress
        # Every run starts at w: its sharpness is measured once.
        self.first_estimate, self.first = Followed.fresh(problem, key=key).measure(problem, w)
        self.lanes: dict[float, Lane] = {}
        self.extra: dict[str, NDArray[Any]] = {}
        self._load()

    def run(self, rates: Sequence[float]) -> tuple[Descent, ...]:
        missing = [self._lane(lr) for lr in rates]
        groups = [missing] if self.together else [[lane] for lane in missing]
        for group in groups:
            carry(_Group(self, group), checkpoint=self.checkpoint, progress=self.progress)
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

    def keep(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Save these arrays at once, and from now on together with the runs: the flow that led to their rates."""
        self.extra = arrays
        if self.checkpoint is not None:
            self.checkpoint.save(self.arrays())

    def arrays(self) -> dict[str, NDArray[Any]]:
        arrays = {f"extra/{name}": array for name, array in self.extra.items()}
        arrays["rates"] = np.array(list(self.lanes), dtype=float)
        for k, lane in enumerate(self.lanes.values()):
            arrays |= {f"{k}/{name}": array for name, array in lane.arrays().items()}
        return arrays

    def _load(self) -> None:
        saved = None if self.checkpoint is None else self.checkpoint.load()
        if saved is None or "rates" not in saved:  # without rates it is a checkpoint of the flow before the runs
            return
        self.extra = part(saved, "extra/")
        for k, lr in enumerate(saved["rates"].tolist()):
            self._lane(lr).restore(part(saved, f"{k}/"))


class _Group:
    """A `Batch` of lanes that one compiled call carries out. Between two calls each lane records what is pending."""

    def __init__(self, descents: Descents, lanes: list[Lane]):
        self.descents, self.problem, self.lanes, self.pace = descents, descents.problem, lanes, Pace(_CALL_SECONDS)
        self._record()

    def under_way(self) -> bool:
        return bool(self.lanes)

    def advance(self) -> int:
        lanes = self.lanes
        count = min(self.pace.steps, *(lane.pause - lane.step for lane in lanes))
        before = time.perf_counter()
        filled = lanes + [lanes[0]] * (_size(len(lanes)) - len(lanes))
        # A filling lane meets its infinite target at once, so it takes no step.
        targets = np.array([lane.target if k < len(lanes) else np.inf for k, lane in enumerate(filled)])
        # In numpy: JAX would compile a program for each size of the batch.
        rates, points = np.array([lane.lr for lane in filled]), np.stack([lane.w for lane in filled])
        rows, done, halts = advance(self.problem, rates, points, count=count, targets=targets)
        self.pace.learn(count, time.perf_counter() - before)
        for k, lane in enumerate(lanes):
            lane.moved(self.problem, jnp.asarray(rows[k]), int(done[k]), Halt(int(halts[k])))
        self._record()
        self.latest = (self.lanes or lanes)[-1]
        return count

    def _record(self) -> None:
        """What is pending in each lane that has not ended; it may end the lane."""
        for lane in self.lanes:
            if lane.outcome is None:
                lane.record(self.problem)
        self.lanes = [lane for lane in self.lanes if lane.outcome is None]

    def arrays(self) -> dict[str, NDArray[Any]]:
        return self.descents.arrays()

    def progress(self, steps_per_second: float) -> Progress:
        lane = self.latest
        latest = {"loss": lane.rows[-1][1], "sharpness": lane.sharpness, "lr": lane.lr}
        return Progress(lane.step, float(lane.step), float(lane.most), steps_per_second, latest)


def _size(count: int) -> int:
    return next((size for size in _SIZES if size >= count), count)
