"""Steps and epochs of a run whose stages have different batch sizes, and the moments at which it is recorded."""

import math
from dataclasses import dataclass

from steppe.dynamics.schedule import Schedule, Stage
from steppe.until import Stop
from steppe.when import When


@dataclass(frozen=True)
class Segment:
    """One stage on the time axis: steps [first_step, last_step), of which `per_epoch` make an epoch."""

    stage: Stage
    first_step: int
    first_epoch: int
    per_epoch: int
    last_step: float

    def epoch(self, step: int) -> float:
        """The epochs done after `step` steps of the run."""
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
    """The stages of a schedule on n examples, one after the other, cut where `stop` says; inf where nothing does.

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
