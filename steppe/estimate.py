"""A number that carries its own error."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Estimate:
    """`value`, with lower ≤ truth ≤ upper at the stated `confidence`; `matvecs` products were spent on it.

    An exact result has lower == value == upper and confidence 1. `parts` names summands of the value
    where a measure has them; `converged` is False where the work stopped before the accuracy asked for.

    >>> float(Estimate.exact(2.0)) + 1
    3.0
    """

    value: float
    lower: float
    upper: float
    confidence: float = 1.0
    matvecs: int = 0
    parts: Mapping[str, "Estimate"] = field(default_factory=dict)
    converged: bool = True

    @classmethod
    def exact(cls, value: float, *, matvecs: int = 0, parts: Mapping[str, "Estimate"] | None = None) -> "Estimate":
        value = float(value)
        return cls(value, value, value, 1.0, matvecs, dict(parts or {}))

    @property
    def is_exact(self) -> bool:
        return self.lower == self.value == self.upper

    def __float__(self) -> float:
        return self.value
