"""A finished sweep, read: its ends at one goal, its critical rate, its trajectories; and the panels that show them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steppe.papers.conflicting_biases.table_1 import Setting

_LOSSES = {"half_mse": "MSE", "cross_entropy": "CE"}
_MEASURES = {
    "empirical_fisher": "Fisher λ_max, own labels", "empirical_fisher_trace": "Fisher trace, own labels",
    "weighted": "λ_max(|w| H |w|)", "adaptive_linf": "adaptive sharpness, ℓ∞",
    "invariant": "least λ_max of all rescalings",
}  # fmt: skip


@dataclass(frozen=True)
class Ends:
    """The ends of one sweep at one loss goal."""

    entry: Any
    goal: float

    @property
    def spec(self) -> dict[str, Any]:
        return spec_of(self.entry)

    @property
    def table(self) -> dict[str, NDArray[Any]]:
        """The columns of the runs that reached the goal, in the order of their rates."""
        curves = self.entry.curves
        keep = np.isclose(curves["goal"], self.goal, rtol=1e-9, atol=0) & (curves["outcome"] == 0)
        return {name: column[keep] for name, column in curves.items()}

    @property
    def flow(self) -> dict[str, float]:
        """The same numbers at the end of the flow; unknown ones are missing."""
        columns = self.entry.result["flow"]
        k = int(np.argmin(np.abs(np.array(columns["goal"]) / self.goal - 1)))
        return {name: column[k] for name, column in columns.items() if column[k] is not None}

    @property
    def critical(self) -> float:
        """η_c = 2/s_GF."""
        return self.flow["critical"]

    @property
    def loss(self) -> str:
        return self.spec["setting"]["loss"]

    @property
    def setting(self) -> Setting:
        return Setting(**self.spec["setting"])

    @property
    def title(self) -> str:
        """In two lines: network and data; loss, start and goal."""
        s = self.setting
        start = "" if s.scale == 1 else f", start ×{s.scale:g}"
        return f"{s.name}\n{_LOSSES[s.loss]}, seed {s.seed}{start}, loss {self.goal:g}"

    @property
    def rates(self) -> list[float]:
        """All rates, also those that did not reach the goal."""
        return self.entry.result["runs"]["lr"]

    def path(self, k: int) -> dict[str, NDArray[Any]]:
        """What the run at the k-th of all rates recorded on the way."""
        params, prefix = self.entry.params, f"path/{k}/"
        return {name.removeprefix(prefix): a for name, a in params.items() if name.startswith(prefix)}


def spec_of(entry: Any) -> dict[str, Any]:
    """The spec of the sweep, also of one whose ends were measured once more."""
    spec: dict[str, Any] = entry.spec.get("sweep", entry.spec)
    return spec


def at_last_goal(entry: Any) -> Ends:
    return Ends(entry, spec_of(entry)["goals"][-1])


def at_goal(entry: Any, goal: float) -> Ends:
    """The ends at this goal, or at the last one if the sweep, a stand-in, does not have it."""
    return Ends(entry, goal) if goal in spec_of(entry)["goals"] else at_last_goal(entry)


def at_every_goal(entry: Any) -> list[Ends]:
    return [Ends(entry, goal) for goal in spec_of(entry)["goals"]]


def row_summary(ends: Ends) -> dict[str, Any]:
    """The ends of a sweep in numbers: the setting, the critical rate, and `steppe.rates.summary`."""
    from steppe.rates import summary

    flow = {name: ends.flow[name] for name in ("initial_sharpness", "largest_sharpness")}
    setting = {"setting": ends.title.replace("\n", ", "), "seed": ends.setting.seed} | flow
    # A product with ∇²L costs as much as two gradients.
    runs = ends.entry.result["runs"]
    setting["gradients"] = (
        sum(runs["gradients"]) + 2 * sum(runs["products"]) + int(ends.entry.result["flow"]["gradients"][-1])
    )
    return setting | {"critical_rate": ends.critical} | summary(ends.table, ends.critical) | {"rates": len(ends.rates)}


# The panels: one quantity of the ends against the rate, or of three runs against the time.


def panel(ends: Ends, quantity: str, *, fine: bool = False, titled: bool = True) -> dict[str, Any]:
    """A panel of `steppe.rates.draw`. `fine`: only rates up to 6/s_GF, the paper's fine grid."""
    from steppe.rates import _draw

    table, flow = ends.table, ends.flow
    keep = table["lr"] <= 3 * ends.critical * 1.0001 if fine else np.full(len(table["lr"]), True)
    kept = {name: column[keep] for name, column in table.items()}
    smoothed = ends.loss == "cross_entropy"
    one = _draw.panel(kept, flow, quantity, smoothed=smoothed) | {"title": ends.title if titled else ""}
    if ends.spec.get("multiples"):  # rates from 0.5 to 27 η_c, where the paper's grids are even
        one = {"log": "x"} | one
    return one | ({"y": _MEASURES[quantity]} if quantity in _MEASURES else {})


def seeds_panel(sweeps: Sequence[Ends], quantity: str) -> dict[str, Any]:
    """A quantity of the ends of several seeds over that of the flow's end, against η/η_c of each seed."""
    from steppe.rates._draw import LABELS, line, series_of

    series = []
    for ends, colour in zip(sweeps, ("green", "blue", "pink"), strict=False):
        # The paper draws the sharpness against 2/η, which is s_GF at η_c.
        unit = ends.flow["largest_sharpness" if quantity == "sharpness" else quantity]
        x, y = ends.table["lr"] / ends.critical, ends.table[quantity] / unit
        series.append(series_of(x, y, "joined", colour, f"seed {ends.setting.seed}"))
    over = "its largest along the flow" if quantity == "sharpness" else "the flow's end"
    one: dict[str, Any] = {"x": "learning rate η/$\\eta_c$", "y": f"{LABELS[quantity]}\nover {over}", "series": series}
    if quantity == "sharpness":
        shown = [x for one in series for x in one["x"]]
        rates = np.geomspace(min(shown), max(shown), 100)
        series.append(series_of(rates, 1 / rates, "line", "blue", "2/η"))
        one["top"] = 1.6
    return one | {"log": "x", "places": [line(1.0, "critical rate $\\eta_c$", "orange", "--")]}


def layers_panel(ends: Ends, norm: str, *, titled: bool = True) -> dict[str, Any]:
    """The norm of each weight matrix minus its value at the smallest rate (figure 14)."""
    from steppe.rates._draw import LABELS, RATE, line, series_of

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
    """A quantity along three runs, below, at and far above η_c, against η · iterations (figure 13)."""
    from steppe.rates._draw import LABELS, line, series_of

    labels = {"loss": "training loss", "distance_l1": "ℓ1 distance to the start"} | dict(LABELS)
    series, levels = [], []
    runs = _three_runs(ends)
    for k, colour in zip(runs, ("blue", "orange", "green"), strict=False):
        lr, path = ends.rates[k], ends.path(k)
        # The largest rate differs from sweep to sweep, but a colour has one name in the legend.
        name = "the largest that reached the loss" if k == runs[-1] else f"η = {lr / ends.critical:.2g} $\\eta_c$"
        known = np.isfinite(path[quantity])  # sharpness is measured less often than loss and norms
        series.append(series_of(lr * path["step"][known], path[quantity][known], "line", colour, name))
        if quantity == "sharpness":
            levels.append(line(2 / lr, "2/η of each", colour, ":"))
    one = {"x": "time η · iterations", "y": labels[quantity], "series": series, "levels": levels}
    return one | {"title": ends.title if titled else ""} | ({"log": "y"} if quantity == "loss" else {})


def _three_runs(ends: Ends) -> list[int]:
    """Of the runs that reached the goal: those nearest to half of η_c and to one and a half, and the largest."""
    rates = np.array(ends.rates)
    reached = np.flatnonzero([outcome == "reached" for outcome in ends.entry.result["outcomes"]])
    near = [int(reached[np.argmin(np.abs(rates[reached] - part * ends.critical))]) for part in (0.5, 1.5)]
    return sorted({*near, int(reached[-1])})
