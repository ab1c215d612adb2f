"""How long figures take: seconds of one core, from measured runs, kept in expected_seconds.json beside this file."""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steppe.experiments._paper import Figure, Scale

if TYPE_CHECKING:
    from steppe.store import Store

FILE = Path(__file__).with_name("expected_seconds.json")


@cache
def _known() -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def expected_seconds(figure: Figure, scale: Scale) -> float | None:
    """Seconds of one core for all runs of a figure, as measured; None where it has not been measured."""
    return _known().get(figure.name, {}).get(scale)


def update_expected_seconds(figures: Iterable[Figure], store: "Store") -> int:
    """Write the seconds of all figures whose runs are in the store to the file; returns how many there are."""
    known: dict[str, dict[str, float]] = {name: dict(scales) for name, scales in _known().items()}
    count = 0
    for figure in figures:
        for scale, specs in figure.runs.items():
            entries = [_entry(store, spec) for spec in specs]
            if specs and None not in entries:
                known.setdefault(figure.name, {})[scale] = round(sum(e.about["seconds"] for e in entries), 1)
                count += 1
    ordered = {name: known[name] for name in sorted(known)}
    FILE.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
    _known.cache_clear()
    return count


def _entry(store: "Store", spec: Any) -> Any:
    from steppe.store import StoreError

    try:
        return store.get(spec)
    except StoreError:
        return None
