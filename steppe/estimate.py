"""A number that carries its own error, and how accurate it should be."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from steppe import check

__all__ = ["Accuracy", "Estimate"]


def __dir__() -> list[str]:
    return list(__all__)


@dataclass(frozen=True)
class Estimate:
    """`value`, with lower ≤ truth ≤ upper at the stated `confidence`; it cost `matvecs` products.

    An exact result has lower == value == upper and confidence 1. `parts` names the summands of the value, if the
    measure has any; `converged` is False if the work stopped before the requested accuracy.

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


@dataclass(frozen=True)
class Accuracy:
    """An interval of relative width `rtol` that holds the truth with probability `confidence`, for at most
    `max_matvecs` products.

    A solver that reaches `max_matvecs` first returns the interval it has, with `converged=False`.

    >>> Accuracy(1e-3)
    Accuracy(rtol=0.001, confidence=0.99, max_matvecs=1000)
    """

    rtol: float
    confidence: float = 0.99
    max_matvecs: int = 1000

    def __post_init__(self) -> None:
        check.number("rtol", self.rtol, above=0.0, remedy="Pass the relative width of the interval, for instance 1e-3.")
        remedy = "Pass for instance 0.99."
        if not 0.0 < check.number("confidence", self.confidence, remedy=remedy) < 1.0:
            check.refuse("confidence", "strictly between 0 and 1", self.confidence, remedy)
        # 1e5 is a whole number too; a range of products needs it as an int.
        object.__setattr__(self, "max_matvecs", check.integer("max_matvecs", self.max_matvecs, minimum=1))

    @staticmethod
    def expected(value: object) -> None:
        """Refuses an argument `accuracy` of another type, such as the float 1e-3."""
        if not isinstance(value, Accuracy):
            check.refuse("accuracy", "a steppe.Accuracy", value, "Pass for instance Accuracy(1e-3).")

    @property
    def delta(self) -> float:
        """The probability with which the interval may miss the truth."""
        return 1.0 - self.confidence
