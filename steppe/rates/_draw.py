"""The ends of a sweep against the rate, in the form of conflicting-biases: plain numbers for `steppe.figures.rates`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steppe import check
from steppe.rates._sweep import Sweep

LABELS: Mapping[str, str] = {
    "sharpness": "sharpness λ_max", "l1": "ℓ1 norm", "l2": "ℓ2 norm", "nuclear": "nuclear norm",
    "test_loss": "test loss", "test_accuracy": "test accuracy", "steps": "iterations",
    "from_flow_l1": "ℓ1 distance to the flow's end", "from_start_l1": "ℓ1 distance to the start", "trace": "tr ∇²L",
    "adaptive_average": "adaptive sharpness, average", "adaptive_worst": "adaptive sharpness, worst",
    "fisher": "Fisher λ_max", "fisher_trace": "Fisher trace",
}  # fmt: skip
RATE = "learning rate η"
_SHOWN = ("sharpness", "l1", "test_loss", "steps")

Table = Mapping[str, NDArray[Any]]


def draw(found: Sweep, stem: str | Path, *, goal: float | None = None) -> list[Path]:
    """Writes the picture of `Sweep.draw` and its numbers: stem.png, stem.pdf and stem.json."""
    from steppe import figures

    if not isinstance(found, Sweep):
        check.refuse("found", "a sweep", found, "Pass what steppe.rates.sweep(problem) returns.")
    drawn = numbers(found, goal)
    return figures.save(figures.rates(drawn), drawn, Path(stem))


def numbers(found: Sweep, goal: float | None) -> dict[str, Any]:
    last = float(found.ends["goal"].min()) if goal is None else goal
    ends = found.at(last)
    flows = [k for k, loss in enumerate(found.flow.get("goal", ())) if np.isclose(loss, last, rtol=1e-9, atol=0)]
    flow = {name: float(column[k]) for k in flows for name, column in found.flow.items()}
    return figure({name: column[ends["outcome"] == 0] for name, column in ends.items()}, flow, last)


def figure(table: Table, flow: Mapping[str, float], goal: float) -> dict[str, Any]:
    shown = [name for name in _SHOWN if name in table]
    grid = [[panel(table, flow, name, smoothed=True) for name in shown[k : k + 2]] for k in range(0, len(shown), 2)]
    return {"title": f"Gradient descent to loss {goal:g}", "grid": grid}


def panel(table: Table, flow: Mapping[str, float], quantity: str, *, smoothed: bool) -> dict[str, Any]:
    """The ends as points, with η_c, 1/s₀ and the level of the flow; a sharpness panel also shows 2/η, maxima and s_GF.

    `flow` holds the same columns at the end of the flow, as far as they are known.
    """
    lr, values = table["lr"], table[quantity]
    series = [series_of(lr, values, "points", "green", "end of gradient descent")]
    levels = [] if quantity not in flow else [line(flow[quantity], "end of the flow", "green", ":")]
    one: dict[str, Any] = {"x": RATE, "y": LABELS.get(quantity, quantity)}
    if quantity == "sharpness":
        # With the few rates alone, the hyperbola would look like straight lines.
        between = np.geomspace(lr.min(), lr.max(), 100) if len(lr) else lr
        series += [
            series_of(lr, table["largest_sharpness"], "circles", "ink", "largest on the way"),
            series_of(between, 2 / between, "line", "blue", "2/η"),
        ]
        if smoothed:
            series.append(series_of(lr, table["smoothed_sharpness"], "squares", "pink", "smoothed maximum"))
        highest = float(np.nanmax(values, initial=0.0))
        if "largest_sharpness" in flow:
            levels.append(line(flow["largest_sharpness"], "largest along the flow", "orange", "-"))
            highest = max(flow["largest_sharpness"], highest)
        if highest > 0:
            one["top"] = 1.6 * highest
    if quantity == "steps":
        one["log"] = "xy"
    return one | {"series": series, "levels": levels, "places": _places(lr, flow)}


def _places(lr: NDArray[Any], flow: Mapping[str, float]) -> list[dict[str, Any]]:
    """η_c, and 1/s₀ if a rate is as large."""
    if not np.isfinite(flow.get("critical", np.inf)):
        return []
    places = [line(flow["critical"], "critical rate $\\eta_c$", "orange", "--")]
    if len(lr) and 0 < 1 / lr.max() <= flow["initial_sharpness"]:
        places.append(line(1 / flow["initial_sharpness"], "1/s₀", "pink", "-."))
    return places


def series_of(x: NDArray[Any], y: NDArray[Any], kind: str, colour: str, label: str) -> dict[str, Any]:
    """A series as JSON allows it: without numbers that are not finite."""
    known = np.isfinite(x) & np.isfinite(y)
    return {
        "x": np.asarray(x, float)[known].tolist(), "y": np.asarray(y, float)[known].tolist(), "kind": kind,
        "colour": colour, "label": label,
    }  # fmt: skip


def line(at: float, label: str, colour: str, style: str) -> dict[str, Any]:
    return {"at": float(at), "label": label, "colour": colour, "style": style}
