"""When a run stops: `until.loss(1e-3) | until.steps(10_000)` stops at whichever comes first."""

import math
from dataclasses import dataclass
from typing import TypeVar

from steppe import check

__all__ = ["Stop", "epochs", "loss", "seconds", "steps", "time"]

T = TypeVar("T", int, float)


@dataclass(frozen=True)
class Stop:
    """A run ends as soon as one of these conditions holds; None never holds.

    >>> loss(0.1) | steps(100) | steps(50)
    Stop(loss=0.1, steps=50, epochs=None, time=None, seconds=None)
    """

    loss: float | None = None
    steps: int | None = None
    epochs: int | None = None
    time: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        # A half step is never reached, and NaN is never passed.
        for name, value, whole in (
            ("loss", self.loss, False), ("steps", self.steps, True), ("epochs", self.epochs, True),
            ("time", self.time, False), ("seconds", self.seconds, False),
        ):  # fmt: skip
            if value is not None:
                lowest = -math.inf if name == "loss" else 0
                known = check.integer(name, value, minimum=0) if whole else check.number(name, value, minimum=lowest)
                object.__setattr__(self, name, known)

    def __or__(self, other: "Stop") -> "Stop":
        if not isinstance(other, Stop):
            return NotImplemented
        losses = [s.loss for s in (self, other) if s.loss is not None]
        return Stop(
            max(losses, default=None),
            _first(self.steps, other.steps),
            _first(self.epochs, other.epochs),
            _first(self.time, other.time),
            _first(self.seconds, other.seconds),
        )


def _first(a: T | None, b: T | None) -> T | None:
    return min((v for v in (a, b) if v is not None), default=None)


def _given(name: str, value: T) -> T:
    """The number of a condition; None would be a condition that never holds."""
    if value is None:
        check.refuse(name, "a number", value, "Pass a number, or leave the condition out.")
    return value


def loss(value: float) -> Stop:
    """Until L(w) ≤ value. A full-batch dynamics checks it at every step, any other one after every epoch."""
    return Stop(loss=_given("loss", value))


def steps(count: int) -> Stop:
    """Until `count` steps are done."""
    return Stop(steps=_given("steps", count))


def epochs(count: int) -> Stop:
    """Until `count` passes over the data are done. A step of a full-batch dynamics is one pass."""
    return Stop(epochs=_given("epochs", count))


def time(value: float) -> Stop:
    """Until the flow w′ = −∇L(w) has reached this time."""
    return Stop(time=_given("time", value))


def seconds(value: float) -> Stop:
    """Until this much wall clock has passed. Two runs of the same key may stop at different steps."""
    return Stop(seconds=_given("seconds", value))


def __dir__() -> list[str]:
    return list(__all__)
