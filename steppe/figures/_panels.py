"""Figures that many papers share: rows of panels, grids of panels over the learning rate, tables."""

from collections.abc import Mapping
from typing import Any

from steppe.figures._style import COLOURS, INK, canvas, headline, plain_ticks, shared_legend, styled

_PANEL_KINDS: Mapping[str, Mapping[str, Any]] = {
    "line": {"linewidth": 1.8},
    "thin": {"linewidth": 0.9},
    "dashed": {"linewidth": 1.3, "linestyle": "--"},
    "dotted": {"linewidth": 1.3, "linestyle": ":"},
    "joined": {"linewidth": 1.3, "marker": "o", "markersize": 3.2},
    "points": {"linestyle": "", "marker": "o", "markersize": 3.2, "markeredgewidth": 0},
    "circles": {"linestyle": "", "marker": "o", "markersize": 4.6, "markerfacecolor": "white", "markeredgewidth": 1.0},
    "crosses": {"linestyle": "", "marker": "x", "markersize": 4.5, "markeredgewidth": 1.1},
}
_WIDEST = 4  # more panels than this make two rows


@styled
def panels(numbers: Mapping[str, Any]) -> Any:
    """Series against one quantity for each panel, with marked places and spans, in one row of panels or two.

    `numbers`: title and panels. A panel has x and y (labels) and series; title, log ("x", "y" or "xy"), places, spans,
    limits, legend and legend_columns are optional. A series has x, y, kind (line, thin, dashed, dotted, joined, points,
    circles or crosses) and colour; label, error, and low with high (the edges of a band) are optional. A place {"at",
    "label", "low"} is a dotted vertical line with its label at the top, or at the bottom if low. A span {"from", "to",
    "label"} is a shaded interval.
    """
    count = len(numbers["panels"])
    rows = 1 if count <= _WIDEST else 2
    columns = -(-count // rows)
    figure, axes = canvas(rows, columns, width=3.9 * columns, height=3.5 * rows, share_x=False)
    for axis, one in zip(axes.flat, numbers["panels"], strict=False):
        panel(axis, one)
    for axis in axes.flat[count:]:
        axis.remove()
    headline(figure, numbers["title"])
    return figure


def series(x: Any, y: Any, kind: str, colour: str, label: str | None = None, **rest: Any) -> dict[str, Any]:
    """A series of `panels` as plain numbers; `rest` may give its error.

    >>> series([1, 2], [3.0, 4.0], "line", "blue", "loss")
    {'x': [1, 2], 'y': [3.0, 4.0], 'kind': 'line', 'colour': 'blue', 'label': 'loss'}
    """
    import numpy as np

    named = {} if label is None else {"label": label}
    return {"x": np.asarray(x).tolist(), "y": np.asarray(y).tolist(), "kind": kind, "colour": colour} | named | rest


def panel(axis: Any, one: Mapping[str, Any]) -> None:
    """Draw one panel of `panels` on `axis`."""
    import numpy as np

    for span in one.get("spans", ()):
        axis.axvspan(span["from"], span["to"], color=COLOURS[span.get("colour", "faint")], alpha=0.22, linewidth=0)
        middle = (span["from"] + span["to"]) / 2
        axis.annotate(
            span["label"], (middle, 0.02), xycoords=("data", "axes fraction"), ha="center", fontsize=7.5, color=INK
        )
    for series in one["series"]:
        x, y = (np.asarray(series[name], dtype=float) for name in ("x", "y"))
        style = dict(_PANEL_KINDS[series["kind"]]) | {"color": COLOURS[series["colour"]], "label": series.get("label")}
        if "low" in series:
            axis.fill_between(x, series["low"], series["high"], color=style["color"], alpha=0.18, linewidth=0)
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
    axis.set(xlabel=one["x"], ylabel=one["y"])
    axis.set_title(one.get("title", ""), fontsize=9)
    if any(series.get("label") for series in one["series"]):
        axis.legend(loc=one.get("legend", "best"), ncols=one.get("legend_columns", 1))


_RATE_KINDS: Mapping[str, Mapping[str, Any]] = {
    "points": {"linestyle": "", "marker": "o", "markersize": 3.6, "markeredgewidth": 0},
    "circles": {"linestyle": "", "marker": "o", "markersize": 5.5, "markerfacecolor": "none", "markeredgewidth": 0.8},
    "squares": {"linestyle": "", "marker": "s", "markersize": 4.0, "markerfacecolor": "none", "markeredgewidth": 0.9},
    "line": {"linestyle": "-", "linewidth": 1.2},
    "joined": {"linestyle": "-", "linewidth": 0.9, "marker": "o", "markersize": 3.0, "markeredgewidth": 0},
}


@styled
def rates(numbers: Mapping[str, Any]) -> Any:
    """Final values against the learning rate, a grid of panels with one legend, as in conflicting-biases.

    `numbers`: title, and grid, a list of rows of panels. None leaves a place empty. With `equal_axes` the panels of a
    row have the same axes. A panel has x and y (labels) and
    series; title, log, top (of the y axis), levels and places are optional. A series has x, y, kind (points, circles,
    squares, line or joined), colour and label. A level {"at", "label", "colour", "style"} is a horizontal line; a place
    has the same keys and is vertical.
    """
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
                _rate_panel(axis, panel)
        if numbers.get("equal_axes"):
            for limits in ("xlim", "ylim"):
                ends = [end for axis in row for end in getattr(axis, f"get_{limits}")()]
                for axis in row:
                    getattr(axis, f"set_{limits}")(min(ends), max(ends))
    shared_legend(figure, axes, columns=4, size=7.5)
    headline(figure, numbers["title"], size=10.5)
    return figure


def _rate_panel(axis: Any, panel: Mapping[str, Any]) -> None:
    import numpy as np

    for series in panel["series"]:
        style = dict(_RATE_KINDS[series["kind"]]) | {"color": COLOURS[series["colour"]], "label": series.get("label")}
        axis.plot(np.asarray(series["x"], float), np.asarray(series["y"], float), **style)
    for draw, lines in ((axis.axhline, panel.get("levels", ())), (axis.axvline, panel.get("places", ()))):
        for line in lines:
            style = {"color": COLOURS[line["colour"]], "linestyle": line["style"], "linewidth": 1.1, "zorder": 1}
            draw(line["at"], label=line["label"], **style)
    for name in panel.get("log", ""):
        # Without a positive value there are no decades to show.
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


@styled
def table(numbers: Mapping[str, Any]) -> Any:
    """A table as a picture. `numbers`: title, head (column names) and rows of strings."""
    head, rows = numbers["head"], numbers["rows"]
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    figure, axes = canvas(1, 1, width=0.088 * sum(widths) + 0.6, height=0.42 * (len(rows) + 2))
    axis = axes[0, 0]
    axis.axis("off")
    shares = [w / sum(widths) for w in widths]
    drawn = axis.table(
        rows, colLabels=head, colWidths=shares, loc="center", edges="horizontal", cellLoc="left", colLoc="left"
    )
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(9)
    drawn.scale(1, 1.7)
    for (row, _), cell in drawn.get_celld().items():
        cell.set_edgecolor(INK)
        cell.set_text_props(weight="bold" if row == 0 else "normal")
    axis.set_title(numbers["title"])
    return figure
