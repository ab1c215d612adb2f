"""Stages one after the other, and their steps and epochs on one time axis."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from steppe import check
from steppe.dynamics._base import Dynamics
from steppe.dynamics._descent import GD, SAM
from steppe.until import Stop
from steppe.when import When


@dataclass(frozen=True)
class Stage:
    """`epochs` passes over the data with one dynamics; None means until the run stops."""

    dynamics: Dynamics
    epochs: int | None = None


@dataclass(frozen=True)
class Schedule:
    """Dynamics one after the other, each for its number of epochs: a training table such as wen2023, table 2.

    >>> len(Schedule.table([(0.01, 0.05, 1, 0.0, 200), (0.01, 0.1, 1, 0.0, 400)]).stages)
    2
    """

    stages: tuple[Stage, ...]

    def __post_init__(self) -> None:
        remedy = "Pass Stage(SAM(0.01, 0.05), epochs=100)."
        if not isinstance(self.stages, tuple | list) or not all(isinstance(stage, Stage) for stage in self.stages):
            check.refuse("stages", "a tuple of stages", self.stages, remedy)
        object.__setattr__(self, "stages", tuple(self.stages))
        if not self.stages:
            check.refuse("stages", "at least one stage", self.stages, remedy)
        for stage in self.stages:
            if not isinstance(stage.dynamics, Dynamics):
                check.refuse("dynamics", "a dynamics", stage.dynamics, "Pass for example GD(0.01).")
            if stage.epochs is not None:
                check.integer("epochs", stage.epochs, minimum=1)
            elif stage is not self.stages[-1]:
                check.refuse("epochs", "given for every stage but the last", None, "Pass Stage(dynamics, epochs=100).")

    @classmethod
    def table(cls, rows: Iterable[tuple[float, float, int | None, float, int]]) -> "Schedule":
        """From rows (lr, rho, batch size, weight decay, epochs): gradient descent where rho is 0, else SAM."""
        return cls(
            tuple(
                Stage(
                    SAM(lr, rho, batch, weight_decay=decay) if rho else GD(lr, weight_decay=decay, batch_size=batch),
                    check.integer("epochs", epochs, minimum=1),
                )
                for lr, rho, batch, decay, epochs in rows
            )
        )

    @classmethod
    def of(cls, dynamics: "Dynamics | Schedule") -> "Schedule":
        if isinstance(dynamics, Schedule):
            return dynamics
        if not isinstance(dynamics, Dynamics):
            check.refuse("dynamics", "a dynamics or a Schedule of them", dynamics, "Pass for example GD(0.01).")
        return cls((Stage(dynamics),))


@dataclass(frozen=True)
class Segment:
    """One stage on the time axis: the steps [first_step, last_step), `per_epoch` of them an epoch."""

    stage: Stage
    first_step: int
    first_epoch: int
    per_epoch: int
    last_step: float

    def epoch(self, step: int) -> float:
        """The number of epochs done after `step` steps of the run."""
        return self.first_epoch + (step - self.first_step) / self.per_epoch

    def step_at(self, epoch: float) -> float:
        return self.first_step + (epoch - self.first_epoch) * self.per_epoch

    def is_moment(self, when: When, step: int) -> bool:
        return step == 0 or self.next_moment(when, step - 1) == step

    def next_moment(self, when: When, step: int) -> float:
        """The first step after `step` at which to record."""
        if when.in_epochs:
            return math.ceil(self.step_at(when.after(self.epoch(step))))
        return when.after(step)


def segments(schedule: Schedule, n: int, stop: Stop) -> list[Segment]:
    """The stages of a schedule on n examples, cut where `stop` says; the last step is inf if nothing limits it.

    A full-batch step is a whole epoch.
    """
    laid: list[Segment] = []
    step = epoch = 0
    for stage in schedule.stages:
        per_epoch = -(-n // min(stage.dynamics.batch_size or n, n))
        ends = [math.inf if stop.steps is None else stop.steps]
        ends += [] if stop.epochs is None else [step + (stop.epochs - epoch) * per_epoch]
        ends += [] if stage.epochs is None else [step + stage.epochs * per_epoch]
        laid.append(Segment(stage, step, epoch, per_epoch, min(ends)))
        if stage.epochs is None or min(ends) < ends[-1]:
            break
        step, epoch = step + stage.epochs * per_epoch, epoch + stage.epochs
    return laid
