"""A row of panels, or two: lines, points and marked places against one quantity each."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from steppe.figures.plain_ticks import plain_ticks
from steppe.figures.style import BLUE, FAINT, GREEN, INK, ORANGE, PINK, RED, SKY, canvas, styled

COLOURS = {
    "blue": BLUE, "orange": ORANGE, "green": GREEN, "pink": PINK, "sky": SKY, "red": RED, "ink": INK, "faint": FAINT,
}  # fmt: skip
_KINDS: Mapping[str, Mapping[str, Any]] = {
    "line": {"linewidth": 1.8},
    "thin": {"linewidth": 0.9},
    "dashed": {"linewidth": 1.3, "linestyle": "--"},
    "dotted": {"linewidth": 1.3, "linestyle": ":"},
    "points": {"linestyle": "", "marker": "o", "markersize": 3.2, "markeredgewidth": 0},
    "crosses": {"linestyle": "", "marker": "x", "markersize": 4.5, "markeredgewidth": 1.1},
}
# More panels than this are drawn in two rows.
WIDEST = 4


@styled
def panels(numbers: Mapping[str, Any]) -> Any:
    """`numbers`: title and panels, each drawn by `panel`."""
    count = len(numbers["panels"])
    rows = 1 if count <= WIDEST else 2
    columns = -(-count // rows)
    figure, axes = canvas(rows, columns, width=3.9 * columns, height=3.5 * rows, share_x=False)
    for axis, one in zip(axes.flat, numbers["panels"], strict=False):
        panel(axis, one)
    for axis in axes.flat[count:]:
        axis.remove()
    figure.suptitle(numbers["title"], x=0.01, ha="left", fontweight="bold", fontsize=11)
    return figure


def panel(axis: Any, one: Mapping[str, Any]) -> None:
    """One panel on `axis`.

    `one`: x and y (labels), series, and if wanted title, log ("x", "y" or "xy"), places, spans, limits, legend,
    legend_columns.
    A series has x, y, kind (line, thin, dashed, dotted, points, crosses), colour, and if wanted label and error;
    a place {"at", "label", "low"} is a dotted vertical line, labelled above or below; a span {"from", "to", "label"} a
    shaded stretch.
    """
    for span in one.get("spans", ()):
        axis.axvspan(span["from"], span["to"], color=COLOURS[span.get("colour", "faint")], alpha=0.22, linewidth=0)
        middle = (span["from"] + span["to"]) / 2
        axis.annotate(
            span["label"], (middle, 0.02), xycoords=("data", "axes fraction"), ha="center", fontsize=7.5, color=INK
        )
    for series in one["series"]:
        x, y = (np.asarray(series[name], dtype=float) for name in ("x", "y"))
        style = dict(_KINDS[series["kind"]]) | {"color": COLOURS[series["colour"]], "label": series.get("label")}
        if "error" in series:
            axis.errorbar(x, y, yerr=series["error"], capsize=2, elinewidth=0.9, **style)
        else:
            axis.plot(x, y, **style)
    for name in one.get("log", ""):
        getattr(axis, f"set_{name}scale")("log")
    for name, (low, high) in one.get("limits", {}).items():
        getattr(axis, f"set_{name}lim")(low, high)
    plain_ticks(axis)
    for place in one.get("places", ()):
        axis.axvline(place["at"], color=INK, linewidth=0.9, linestyle=(0, (1, 2)))
        low = place.get("low", False)
        axis.annotate(
            place["label"], (place["at"], 0.02 if low else 0.98), xycoords=("data", "axes fraction"), xytext=(3, 0),
            textcoords="offset points", va="bottom" if low else "top", fontsize=8, color=INK,
        )  # fmt: skip
    axis.set_xlabel(one["x"])
    axis.set_ylabel(one["y"])
    axis.set_title(one.get("title", ""), fontsize=9)
    if any(series.get("label") for series in one["series"]):
        axis.legend(loc=one.get("legend", "best"), ncols=one.get("legend_columns", 1))
