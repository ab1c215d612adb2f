"""Runs that are put together from other runs."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from steppe.store import Computed, Entry

Get = Callable[[Any], "Entry | None"]


class Composite(ABC):
    """A spec made of parts, which are specs. All cores work on the parts, a kill loses no finished part, and other
    specs share them. `get(spec)` is the finished run of a spec, or None.
    """

    @property
    @abstractmethod
    def split(self) -> bool:
        """Whether the parts are worth processes of their own. If not, `compute` computes everything."""

    @abstractmethod
    def missing(self, get: Get) -> list[Any]:
        """The parts that are not in the store and can be computed now. Empty when `compose` can be called."""

    @abstractmethod
    def compose(self, get: Get) -> "Computed":
        """The result, from parts that are all in the store."""


def is_composite(spec: Any) -> TypeGuard[Composite]:
    return isinstance(spec, Composite) and spec.split
