"""The ends of a sweep as a table on the terminal, of a row of table 1 and of the user's own problem alike."""

from collections.abc import Mapping, Sequence
from typing import Any

# The columns that are shown, with their names in a sweep's table; the last where there is a test set.
_SHOWN = {
    "iterations": "steps", "sharpness": "sharpness", "2/η": "limit", "ℓ1": "l1", "ℓ2": "l2", "nuclear": "nuclear",
    "test loss": "test_loss",
}  # fmt: skip


def ends_rows(
    ends: Mapping[str, Any], rates: Sequence[float], outcomes: Sequence[str], critical: float
) -> tuple[list[str], list[list[str]]]:
    """Titles, and one line a rate: `ends` at one goal, of those that reached it at least."""
    place = {float(lr): k for k, lr in enumerate(ends["lr"])}
    columns = {title: ends[name] for title, name in _SHOWN.items() if name in ends}
    rows = []
    for lr, outcome in zip(rates, outcomes, strict=True):
        values = [f"{c[place[lr]]:.4g}" if outcome == "reached" else "" for c in columns.values()]
        rows.append([f"{lr / critical:.3f}", outcome, *values])
    return ["η/η_c", "outcome", *columns], rows
