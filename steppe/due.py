"""Which of many runs, or of their parts, can be computed now."""

from collections.abc import Sequence
from typing import Any

from steppe.assembled import apart
from steppe.store import Entry, Store, address


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
