"""Final values against the learning rate in the form of conflicting-biases, a grid of panels."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from steppe.figures.panels import COLOURS
from steppe.figures.plain_ticks import plain_ticks
from steppe.figures.style import INK, canvas, styled

_KINDS: Mapping[str, Mapping[str, Any]] = {
    "points": {"linestyle": "", "marker": "o", "markersize": 3.6, "markeredgewidth": 0},
    "circles": {"linestyle": "", "marker": "o", "markersize": 5.5, "markerfacecolor": "none", "markeredgewidth": 0.8},
    "squares": {"linestyle": "", "marker": "s", "markersize": 4.0, "markerfacecolor": "none", "markeredgewidth": 0.9},
    "line": {"linestyle": "-", "linewidth": 1.2},
    "joined": {"linestyle": "-", "linewidth": 0.9, "marker": "o", "markersize": 3.0, "markeredgewidth": 0},
}


@styled
def rates(numbers: Mapping[str, Any]) -> Any:
    """`numbers`: title, and grid, rows of panels, each drawn by `_panel`; None leaves a place empty."""
    grid = numbers["grid"]
    columns = max(len(row) for row in grid)
    width, height = max(5.0, 3.1 * columns), 0.9 + 2.3 * len(grid)
    figure, axes = canvas(len(grid), columns, width=width, height=height, share_x=False)
    for row, panels in zip(axes, grid, strict=True):
        for k, axis in enumerate(row):
            panel = panels[k] if k < len(panels) else None
            if panel is None:
                axis.set_visible(False)
            else:
                _panel(axis, panel)
    _one_legend(figure, axes)
    figure.suptitle(numbers["title"], x=0.01, ha="left", fontweight="bold", fontsize=10.5)
    return figure


def _panel(axis: Any, panel: Mapping[str, Any]) -> None:
    """`panel`: x and y (labels), series, and if wanted title, log, top (of the y axis), levels and places.

    A series has x, y, kind, colour and label; a level {"at", "label", "colour", "style"} is a horizontal line, a place
    the same, vertical.
    """
    for series in panel["series"]:
        style = dict(_KINDS[series["kind"]]) | {"color": COLOURS[series["colour"]], "label": series.get("label")}
        axis.plot(np.asarray(series["x"], float), np.asarray(series["y"], float), **style)
    for draw, lines in ((axis.axhline, panel.get("levels", ())), (axis.axvline, panel.get("places", ()))):
        for line in lines:
            style = {"color": COLOURS[line["colour"]], "linestyle": line["style"], "linewidth": 1.1, "zorder": 1}
            draw(line["at"], label=line["label"], **style)
    for name in panel.get("log", ""):
        # Where nothing has a logarithm there are no decades to show.
        if any(value > 0 for series in panel["series"] for value in series[name]):
            getattr(axis, f"set_{name}scale")("log")
    plain_ticks(axis)
    if axis.get_xscale() == "linear":
        axis.locator_params(axis="x", nbins=5)  # rates have long labels
    if "top" in panel:
        axis.set_ylim(0, panel["top"])
    axis.set_xlabel(panel["x"], fontsize=8)
    axis.set_ylabel(panel["y"], fontsize=8)
    axis.set_title(panel.get("title", ""), fontsize=7.5, color=INK)
    axis.tick_params(labelsize=7)


def _one_legend(figure: Any, axes: Any) -> None:
    """The panels share their marks: one legend below all of them, every mark once."""
    marks: dict[str, Any] = {}
    for axis in axes.flat:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            marks.setdefault(label, handle)
    figure.legend(marks.values(), marks.keys(), loc="outside lower center", ncols=min(4, len(marks)), fontsize=7.5)
