"""When a run is recorded: at even distances or at even ratios, in steps or in epochs; first and last always.

A flow can be recorded at chosen times too.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from steppe import check


@dataclass(frozen=True)
class When:
    """A rising sequence of moments: 0, distance, 2·distance, ... or 0, 1, ratio, ratio², ... rounded to whole ones.

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

    def after(self, moment: float) -> float:
        """The first moment of the sequence after `moment`; no step is one where times were chosen."""
        if self.flow_times is not None:
            return math.inf
        if self.per_decade is None:
            return (math.floor(moment / self.distance) + 1) * self.distance
        k = 0 if moment < 1 else math.floor(math.log10(moment) * self.per_decade) - 1
        while (candidate := round(10 ** (k / self.per_decade))) <= moment:
            k += 1
        return candidate


def every(*, steps: int | None = None, epochs: int | None = None) -> When:
    """Every so many steps, or every so many epochs."""
    if (steps is None) == (epochs is None):
        check.refuse("every", "given either steps or epochs", (steps, epochs), "Pass one of them.")
    name, value = ("steps", steps) if epochs is None else ("epochs", epochs)
    return When(distance=check.integer(name, value, minimum=1), in_epochs=epochs is not None)


def logarithmic(*, per_decade: int = 20, in_epochs: bool = False) -> When:
    """At even ratios: `per_decade` moments for each factor of ten, steps or epochs."""
    return When(per_decade=check.integer("per_decade", per_decade, minimum=1), in_epochs=in_epochs)


def times(values: Iterable[float]) -> When:
    """At these times of a flow, wherever its steps end.

    >>> times([10.0, 1.0]).flow_times
    (1.0, 10.0)
    """
    remedy = "Pass for example numpy.geomspace(1, 1000, 30)."
    chosen = check.numbers("times", values, minimum=0.0, rule="a list of at least one time", remedy=remedy)
    return When(flow_times=tuple(chosen))
