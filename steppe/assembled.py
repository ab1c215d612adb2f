"""Runs that are put together from other runs. The specs of papers are such: nothing heavy is imported here."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from steppe.store import Computed, Entry

Get = Callable[[Any], "Entry | None"]


class Assembled(ABC):
    """A spec made of parts, which are specs: all cores work on it, a kill loses no finished part, others share them.

    `get(spec)` is the finished run of a spec, or None.
    """

    @property
    @abstractmethod
    def apart(self) -> bool:
        """Whether its parts are worth processes of their own; else its `compute` makes everything."""

    @abstractmethod
    def missing(self, get: Get) -> list[Any]:
        """The parts that can be computed now and are not there; none when it can be put together."""

    @abstractmethod
    def assemble(self, get: Get) -> "Computed":
        """What the parts come to; all are there."""


def apart(spec: Any) -> TypeGuard[Assembled]:
    return isinstance(spec, Assembled) and spec.apart
