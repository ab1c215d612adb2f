"""Runs that are put together from other runs, and which of many runs can be computed now."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

from steppe.store import Computed, Entry, Store, address

Get = Callable[[Any], Entry | None]


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
    def assemble(self, get: Get) -> Computed:
        """What the parts come to; all are there."""


def apart(spec: Any) -> TypeGuard[Assembled]:
    return isinstance(spec, Assembled) and spec.apart


class Due:
    """The runs of `specs` that can be computed now: those that are not there, or parts of them."""

    def __init__(self, specs: Sequence[Any], store: Store, *, recompute: bool):
        self.wanted = {address(spec): spec for spec in specs}
        self.store, self.recompute = store, recompute
        self.entries: dict[str, Entry] = {}
        self.fresh: set[str] = set()

    def __call__(self) -> dict[str, Any]:
        """By their addresses; none when all are there."""
        found: dict[str, Any] = {}
        for id, spec in self.wanted.items():
            if self.get(spec) is None:
                parts = spec.missing(self.get) if apart(spec) else []
                found |= {address(part): part for part in parts} or {id: spec}
        return found

    def get(self, spec: Any) -> Entry | None:
        """Read once. What is to be computed again is not there until it has been."""
        id = address(spec)
        if id not in self.entries and (id in self.fresh or not self.recompute):
            entry = self.store.get(spec)
            if entry is None:
                return None
            self.entries[id] = entry
        return self.entries.get(id)

    def made(self, id: str) -> None:
        self.fresh.add(id)
