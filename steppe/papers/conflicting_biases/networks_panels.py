"""The panels of the paper: one quantity of the ends of a sweep against the rate."""

from typing import Any

import numpy as np

from steppe.papers.conflicting_biases.networks_ends import Ends
from steppe.rates import _draw as panels
from steppe.rates._draw import LABELS, RATE, line, series_of


def panel(ends: Ends, quantity: str, *, fine: bool = False, titled: bool = True) -> dict[str, Any]:
    """That of `steppe.rates._draw`. `fine`: only rates up to 6/s_GF, the paper's fine grid."""
    table, flow = ends.table, ends.flow
    keep = table["lr"] <= 3 * ends.critical * 1.0001 if fine else np.full(len(table["lr"]), True)
    kept = {name: column[keep] for name, column in table.items()}
    smoothed = ends.entry.spec["setting"]["loss"] == "cross_entropy"
    return panels.panel(kept, flow, quantity, smoothed=smoothed) | {"title": ends.title if titled else ""}


def layers_panel(ends: Ends, norm: str, *, titled: bool = True) -> dict[str, Any]:
    """The norm of each weight matrix, less that at the smallest rate (figure 14)."""
    table = ends.table
    names = [name for name in table if name.startswith(norm + "[") and name.endswith("['W']")]
    colours = ("blue", "orange", "green", "pink", "sky", "red", "ink")
    series = [
        series_of(table["lr"], table[name] - table[name][0], "joined", colours[k % len(colours)], f"layer {k + 1}")
        for k, name in enumerate(names)
    ]
    places = [line(ends.critical, "critical rate $\\eta_c$", "orange", "--")]
    title = ends.title if titled else ""
    return {"x": RATE, "y": f"{LABELS[norm]}, growth", "title": title, "series": series, "places": places}


def path_panel(ends: Ends, quantity: str, *, titled: bool = True) -> dict[str, Any]:
    """A quantity along three runs, against η · iterations (figure 13): below, at and far above η_c."""
    labels = {"loss": "training loss", "distance_l1": "ℓ1 distance to the start"} | dict(LABELS)
    series, levels = [], []
    runs = chosen(ends)
    for k, colour in zip(runs, ("blue", "orange", "green"), strict=False):
        lr, path = ends.rates[k], ends.path(k)
        # The largest is another one in every sweep, and a colour has one name in the legend.
        name = "the largest that reached the loss" if k == runs[-1] else f"η = {lr / ends.critical:.2g} $\\eta_c$"
        known = np.isfinite(path[quantity])  # sharpness is not measured wherever loss and norms are
        series.append(series_of(lr * path["step"][known], path[quantity][known], "line", colour, name))
        if quantity == "sharpness":
            levels.append(line(2 / lr, "2/η of each", colour, ":"))
    one = {"x": "time η · iterations", "y": labels[quantity], "series": series, "levels": levels}
    return one | {"title": ends.title if titled else ""} | ({"log": "y"} if quantity == "loss" else {})


def chosen(ends: Ends) -> list[int]:
    """Three of the runs that reached the goal: the nearest to half of η_c, to one and a half, and the largest."""
    rates = np.array(ends.rates)
    reached = np.flatnonzero([outcome == "reached" for outcome in ends.entry.result["outcomes"]])
    near = [int(reached[np.argmin(np.abs(rates[reached] - part * ends.critical))]) for part in (0.5, 1.5)]
    return sorted({*near, int(reached[-1])})
