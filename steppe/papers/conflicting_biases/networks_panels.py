"""The panels of the paper: one quantity of the ends of a sweep against the rate."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steppe.papers.conflicting_biases.networks_ends import Ends

LABELS: Mapping[str, str] = {
    "sharpness": "sharpness λ_max", "l1": "ℓ1 norm", "l2": "ℓ2 norm", "nuclear": "nuclear norm",
    "test_loss": "test loss", "test_accuracy": "test accuracy", "steps": "iterations",
    "from_flow_l1": "ℓ1 distance to the flow's end", "from_start_l1": "ℓ1 distance to the start", "trace": "tr ∇²L",
    "adaptive_average": "adaptive sharpness, average", "adaptive_worst": "adaptive sharpness, worst",
    "fisher": "Fisher λ_max", "fisher_trace": "Fisher trace",
}  # fmt: skip
_RATE = "learning rate η"


def panel(ends: Ends, quantity: str, *, fine: bool = False, titled: bool = True) -> dict[str, Any]:
    """Points of the ends with η_c, 1/s₀ and the flow's level; on a sharpness panel 2/η, maxima and s_GF too.

    `fine`: only rates up to 6/s_GF, the paper's fine grid.
    """
    table, flow = ends.table, ends.flow
    keep = table["lr"] <= 3 * ends.critical * 1.0001 if fine else np.full(len(table["lr"]), True)
    lr, values = table["lr"][keep], table[quantity][keep]
    series = [_series(lr, values, "points", "green", "end of gradient descent")]
    levels = [] if quantity not in flow else [_line(flow[quantity], "end of the flow", "green", ":")]
    one: dict[str, Any] = {"x": _RATE, "y": LABELS[quantity], "title": ends.title if titled else ""}
    if quantity == "sharpness":
        # Few rates would make a hyperbola of straight lines.
        between = np.geomspace(lr.min(), lr.max(), 100) if len(lr) else lr
        series += [
            _series(lr, table["largest_sharpness"][keep], "circles", "ink", "largest on the way"),
            _series(between, 2 / between, "line", "blue", "2/η"),
        ]
        if ends.entry.spec["setting"]["loss"] == "cross_entropy":
            series.append(_series(lr, table["smoothed_sharpness"][keep], "squares", "pink", "smoothed maximum"))
        levels.append(_line(flow["largest_sharpness"], "largest along the flow", "orange", "-"))
        one["top"] = 1.6 * max(flow["largest_sharpness"], float(np.nanmax(values, initial=0.0)))
    if quantity == "steps":
        one["log"] = "xy"
    places = [_line(ends.critical, "critical rate $\\eta_c$", "orange", "--")]
    initial = 1 / flow["initial_sharpness"]
    if len(lr) and initial <= lr.max():
        places.append(_line(initial, "1/s₀", "pink", "--"))
    return one | {"series": series, "levels": levels, "places": places}


def layers_panel(ends: Ends, norm: str, *, titled: bool = True) -> dict[str, Any]:
    """The norm of each weight matrix, less that at the smallest rate (figure 14)."""
    table = ends.table
    names = [name for name in table if name.startswith(norm + "[") and name.endswith("['W']")]
    colours = ("blue", "orange", "green", "pink", "sky", "red", "ink")
    series = [
        _series(table["lr"], table[name] - table[name][0], "joined", colours[k % len(colours)], f"layer {k + 1}")
        for k, name in enumerate(names)
    ]
    places = [_line(ends.critical, "critical rate $\\eta_c$", "orange", "--")]
    title = ends.title if titled else ""
    return {"x": _RATE, "y": f"{LABELS[norm]}, growth", "title": title, "series": series, "places": places}


def path_panel(ends: Ends, quantity: str, *, titled: bool = True) -> dict[str, Any]:
    """A quantity along three runs, against η · iterations (figure 13): below, at and far above η_c."""
    labels = {"loss": "training loss", "distance_l1": "ℓ1 distance to the start"} | dict(LABELS)
    series, levels = [], []
    for k, colour in zip(chosen(ends), ("blue", "orange", "green"), strict=False):
        lr, path = ends.rates[k], ends.path(k)
        name = f"η = {lr / ends.critical:.2g} $\\eta_c$"
        series.append(_series(lr * path["step"], path[quantity], "line", colour, name))
        if quantity == "sharpness":
            levels.append(_line(2 / lr, "2/η of each", colour, ":"))
    one = {"x": "time η · iterations", "y": labels[quantity], "series": series, "levels": levels}
    return one | {"title": ends.title if titled else ""} | ({"log": "y"} if quantity == "loss" else {})


def chosen(ends: Ends) -> list[int]:
    """Three of the runs that reached the goal: the nearest to half of η_c, to one and a half, and the largest."""
    rates = np.array(ends.rates)
    reached = np.flatnonzero([outcome == "reached" for outcome in ends.entry.result["outcomes"]])
    near = [int(reached[np.argmin(np.abs(rates[reached] - part * ends.critical))]) for part in (0.5, 1.5)]
    return sorted({*near, int(reached[-1])})


def _series(x: NDArray[Any], y: NDArray[Any], kind: str, colour: str, label: str) -> dict[str, Any]:
    """Numbers as JSON has them: what is not finite is left out."""
    known = np.isfinite(x) & np.isfinite(y)
    return {
        "x": np.asarray(x, float)[known].tolist(), "y": np.asarray(y, float)[known].tolist(), "kind": kind,
        "colour": colour, "label": label,
    }  # fmt: skip


def _line(at: float, label: str, colour: str, style: str) -> dict[str, Any]:
    return {"at": float(at), "label": label, "colour": colour, "style": style}
