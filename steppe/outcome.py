"""Why a run ended: declared once, for every loop, kernel, table and stored file."""

import enum
from typing import Literal, get_args

__all__ = ["OUTCOMES", "Halt", "Outcome"]

Outcome = Literal["reached", "exhausted", "diverged", "stalled"]

# Tables and checkpoints store an outcome as its place in this order.
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


class Halt(enum.IntEnum):
    """Why compiled code returned. Kernels return these numbers, and checkpoints keep them.

    >>> Halt.ENDED.outcome, OUTCOMES.index(Halt(2).outcome)
    ('exhausted', 2)
    """

    NOT = 0
    REACHED = 1
    DIVERGED = 2
    STALLED = 3
    ENDED = 4

    @property
    def outcome(self) -> Outcome:
        """The outcome of a run that ends here; a run that nothing halted has used up its steps."""
        return _MEANING[self]


_MEANING: dict[Halt, Outcome] = {
    Halt.NOT: "exhausted",
    Halt.REACHED: "reached",
    Halt.DIVERGED: "diverged",
    Halt.STALLED: "stalled",
    Halt.ENDED: "exhausted",
}


def __dir__() -> list[str]:
    return list(__all__)
