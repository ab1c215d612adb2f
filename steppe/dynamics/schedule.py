"""Stages run one after the other: the rows of a training table (wen2023, table 2)."""

from collections.abc import Iterable
from dataclasses import dataclass

from steppe import check
from steppe.dynamics.base import Dynamics
from steppe.dynamics.gd import GD
from steppe.dynamics.sam import SAM


@dataclass(frozen=True)
class Stage:
    """`epochs` passes over the data with one dynamics; None goes on until the run's stop."""

    dynamics: Dynamics
    epochs: int | None = None


@dataclass(frozen=True)
class Schedule:
    """Dynamics one after the other, each for its own number of epochs.

    >>> len(Schedule.table([(0.01, 0.05, 1, 0.0, 200), (0.01, 0.1, 1, 0.0, 400)]).stages)
    2
    """

    stages: tuple[Stage, ...]

    def __post_init__(self) -> None:
        if not self.stages:
            check.refuse("stages", "at least one stage", self.stages, "Pass Stage(SAM(0.01, 0.05), epochs=100).")
        for stage in self.stages:
            if stage.epochs is not None:
                check.integer("epochs", stage.epochs, minimum=1)
            elif stage is not self.stages[-1]:
                check.refuse("epochs", "given for every stage but the last", None, "Say how long the stage lasts.")

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
