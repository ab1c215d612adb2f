"""An estimate that says how batch statistics were treated."""

from dataclasses import dataclass, fields
from typing import final

from steppe.estimate import Estimate
from steppe.measures.operators import Statistics


@final
@dataclass(frozen=True)
class Measured(Estimate):
    """An `Estimate` of a curvature; `statistics` is "full batch", "frozen" or "chunks of k"."""

    statistics: str = "full batch"


def measured(estimate: Estimate, statistics: Statistics) -> Measured:
    return Measured(**{f.name: getattr(estimate, f.name) for f in fields(Estimate)}, statistics=str(statistics))
