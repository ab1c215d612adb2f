"""When a run is recorded: at even distances, at even ratios or at chosen moments; always at its start and its end.

Distances and ratios count steps or epochs. A flow can also be recorded at chosen times.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from steppe import check

__all__ = ["When", "every", "logarithmic", "steps", "times"]


@dataclass(frozen=True)
class When:
    """A rising sequence of moments: 0, distance, 2·distance, ..., or 0, 1, ratio, ratio², ... rounded, or `chosen`.

    >>> w, t, seen = logarithmic(per_decade=2), 0.0, []
    >>> while t <= 100:
    ...     seen.append(t); t = w.after(t)
    >>> seen
    [0.0, 1, 3, 10, 32, 100]
    """

    distance: int = 1
    per_decade: int | None = None
    in_epochs: bool = False
    flow_times: tuple[float, ...] | None = None
    chosen: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        # A distance below 1 would be the same moment again and again.
        check.integer("distance", self.distance, minimum=1)
        if self.per_decade is not None:
            check.integer("per_decade", self.per_decade, minimum=1)
        if self.chosen is not None:
            remedy = "Pass for example [10, 100, 1000]."
            chosen = check.integers("steps", self.chosen, minimum=0, remedy=remedy)
            object.__setattr__(self, "chosen", tuple(sorted(set(chosen))))
        if self.flow_times is not None:
            remedy = "Pass for example numpy.geomspace(1, 1000, 30)."
            rule = "a list of at least one time"
            times = check.numbers("times", self.flow_times, minimum=0.0, rule=rule, remedy=remedy)
            object.__setattr__(self, "flow_times", tuple(times))

    def after(self, moment: float) -> float:
        """The first moment of the sequence after `moment`, inf if there is none. Flow times are not moments."""
        if self.flow_times is not None:
            return math.inf
        if self.chosen is not None:
            return next((step for step in self.chosen if step > moment), math.inf)
        if self.per_decade is None:
            return (math.floor(moment / self.distance) + 1) * self.distance
        k = 0 if moment < 1 else math.floor(math.log10(moment) * self.per_decade) - 1
        while (candidate := round(10 ** (k / self.per_decade))) <= moment:
            k += 1
        return candidate


def every(*, steps: int | None = None, epochs: int | None = None) -> When:
    """After every `steps` steps, or after every `epochs` epochs."""
    if (steps is None) == (epochs is None):
        check.refuse("every", "given either steps or epochs", (steps, epochs), "Pass one of them.")
    name, value = ("steps", steps) if epochs is None else ("epochs", epochs)
    return When(distance=check.integer(name, value, minimum=1), in_epochs=epochs is not None)


def logarithmic(*, per_decade: int = 20, in_epochs: bool = False) -> When:
    """At even ratios: `per_decade` moments for each factor of ten in steps, or in epochs."""
    return When(per_decade=check.integer("per_decade", per_decade, minimum=1), in_epochs=in_epochs)


def steps(values: Iterable[int]) -> When:
    """After these numbers of steps.

    >>> steps([10, 3]).after(3)
    10
    """
    return When(chosen=values)  # type: ignore[arg-type]  # made a tuple there


def times(values: Iterable[float]) -> When:
    """At these times of a flow, which need not be ends of its steps.

    >>> times([10.0, 1.0]).flow_times
    (1.0, 10.0)
    """
    return When(flow_times=values)  # type: ignore[arg-type]  # made a tuple there


def __dir__() -> list[str]:
    return list(__all__)
