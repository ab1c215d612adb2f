"""What the step size does: sharpness and smoothness over it, interpolants, sweeps of rates."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from steppe.figures._style import BLUE, COLOURS, FAINT, GREEN, INK, ORANGE, canvas, plain_ticks, styled

# Sharpness of minima against the step size that led to them, with the limit 2/η.


@styled
def sharpness_curves(numbers: Mapping[str, Any]) -> Any:
    """One panel for each entry of `panels`: λ_max at the minimum, of its flattest implementation, and the lower bound.

    `numbers`: title, and panels, each with title, lr, sharpness, flattest, bound (columns of the runs that count), and
    the step sizes of those that do not: failed (did not converge) and excluded (converged during the warm-up).
    """
    panels = numbers["panels"]
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = canvas(rows, columns, width=max(5.0, 3.0 * columns), height=1.0 + 2.5 * rows, share_x=False)
    for axis, panel in zip(axes.flat, panels, strict=False):
        lr = np.asarray(panel["lr"], dtype=float)
        everywhere = np.sort(np.concatenate([lr, panel["failed"], panel["excluded"]]))
        for name, label, colour, marker in _SERIES:
            axis.plot(lr, panel[name], color=colour, marker=marker, markersize=2.5, linestyle="none", label=label)
        # On top of the points, which cover it where runs end at the edge.
        limit = {"color": INK, "linestyle": "--", "linewidth": 1.0, "zorder": 3}
        axis.plot(everywhere, 2 / everywhere, label="2/η, limit of stability", **limit)
        for name, label, marker in _MARKS:
            if len(panel[name]):
                at = np.full(len(panel[name]), 0.02)
                axis.plot(
                    panel[name], at, color=INK, marker=marker, markersize=5, markeredgewidth=0.7, linestyle="none",
                    label=label, transform=axis.get_xaxis_transform(),
                )  # fmt: skip
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_title(panel["title"])
    for axis in list(axes.flat)[len(panels) :]:
        axis.set_visible(False)
    for axis in axes[-1]:
        axis.set_xlabel("step size η")
    for axis in axes[:, 0]:
        axis.set_ylabel("λ_max ∇²L")
    _one_legend(figure, axes)
    if numbers.get("title"):
        figure.suptitle(numbers["title"], x=0.01, ha="left", fontsize=10, fontweight="bold")
    return figure


# Full, open, full: the three are told apart without colour too.
_SERIES = (
    ("sharpness", "minimum that gradient descent found", BLUE, "o"),
    ("flattest", "its flattest implementation", ORANGE, "^"),
    ("bound", "lower bound 1 + 2 ∫|f″| g", GREEN, "x"),
)
_MARKS = (("failed", "did not converge", "|"), ("excluded", "excluded: converged during the warm-up", "2"))


@styled
def smoothness(numbers: Mapping[str, Any]) -> Any:
    """∫|f″| g against the step size with its bound 1/η − ½, and ∫|f″| at the centre of the data.

    `numbers`: title, lr, weighted, centre.
    """
    figure, axes = canvas(1, 2, width=7.0, height=2.9)
    lr = np.asarray(numbers["lr"], dtype=float)
    left, right = axes[0]
    left.plot(lr, 1 / lr - 0.5, color=INK, linestyle="--", linewidth=1.1, label="bound 1/η − ½")
    left.plot(lr, numbers["weighted"], color=BLUE, marker="o", markersize=3, linestyle="none", label="∫|f″| g")
    right.plot(lr, numbers["centre"], color=ORANGE, marker="^", markersize=3, linestyle="none")
    left.set_ylabel("∫|f″| g")
    right.set_ylabel("∫|f″|, middle half of the data")
    left.set_title(numbers["title"])
    left.legend(loc="upper right")
    for axis in (left, right):
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("step size η")
        axis.grid(color=FAINT, alpha=0.4)
    return figure


def _one_legend(figure: Any, axes: Any) -> None:
    """The panels share their marks: one legend above all of them, every mark once."""
    marks: dict[str, Any] = {}
    for axis in axes.flat:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            marks.setdefault(label, handle)
    figure.legend(marks.values(), marks.keys(), loc="outside lower center", ncols=2 if len(marks) > 3 else len(marks))


# Functions that went through the same points, and where they bend.


@styled
def interpolants(numbers: Mapping[str, Any]) -> Any:
    """A panel for each function: its graph between its knots, and the training points.

    `numbers`: title, x, y (training points), and functions, each with label, at, value (the corners of its graph).
    """
    figure, axes = _panels(numbers, height=1.7)
    low, high = _range(numbers["x"])
    for axis, function in zip(axes.flat, numbers["functions"], strict=False):
        axis.plot(function["at"], function["value"], color=BLUE, linewidth=1.3)
        axis.plot(numbers["x"], numbers["y"], color=INK, marker="o", markersize=3.5, linestyle="none")
        axis.set_title(function["label"], fontsize=9, fontweight="normal")
        axis.set_xlim(low, high)
        inside = [v for a, v in zip(function["at"], function["value"], strict=True) if low <= a <= high]
        bottom, top = min([*inside, *numbers["y"]]), max([*inside, *numbers["y"]])
        axis.set_ylim(bottom - 0.1 * (top - bottom), top + 0.1 * (top - bottom))
    return figure


@styled
def second_derivatives(numbers: Mapping[str, Any]) -> Any:
    """A panel for each function: f″ as stems on its own scale, over the weight g in grey.

    `numbers`: title, x, grid and weight (g on a grid), and functions, each with label, knots, jumps.
    """
    figure, axes = _panels(numbers, height=1.5)
    low, high = _range(numbers["x"])
    g = np.asarray(numbers["weight"], dtype=float)
    for axis, function in zip(axes.flat, numbers["functions"], strict=False):
        largest = max((abs(j) for j in function["jumps"]), default=1.0)
        axis.fill_between(numbers["grid"], g / g.max() * largest, color=FAINT, alpha=0.5, linewidth=0)
        axis.vlines(function["knots"], 0.0, function["jumps"], color=ORANGE, linewidth=1.2)
        axis.plot(function["knots"], function["jumps"], color=ORANGE, marker="o", markersize=2.5, linestyle="none")
        axis.plot(numbers["x"], np.zeros(len(numbers["x"])), color=INK, marker="|", markersize=6, linestyle="none")
        axis.axhline(0.0, color=INK, linewidth=0.6)
        axis.set_title(function["label"], fontsize=9, fontweight="normal")
        axis.set_xlim(low, high)
        axis.set_ylim(-1.15 * largest, 1.15 * largest)
    return figure


@styled
def two_trainings(numbers: Mapping[str, Any]) -> Any:
    """Left the losses against steps, right the functions they ended at, over the training points.

    `numbers`: title, x, y, and runs, each with label, step, loss, at, value.
    """
    figure, axes = canvas(1, 2, width=7.2, height=3.0, share_x=False)
    left, right = axes[0]
    for run, colour, dash in zip(numbers["runs"], (INK, GREEN), ("-", (0, (5, 1))), strict=True):
        left.plot(run["step"], run["loss"], color=colour, linestyle=dash, label=run["label"])
        right.plot(run["at"], run["value"], color=colour, linestyle=dash, linewidth=1.3)
    right.plot(numbers["x"], numbers["y"], color=BLUE, marker="o", markersize=4, linestyle="none", zorder=3)
    right.set_xlim(*_range(numbers["x"]))
    left.set_xscale("log")
    left.set_yscale("log")
    left.set_xlabel("steps")
    left.set_ylabel("loss")
    right.set_xlabel("x")
    right.set_ylabel("f(x)")
    left.legend(loc="lower left")
    left.set_title(numbers["title"])
    return figure


def _panels(numbers: Mapping[str, Any], *, height: float) -> tuple[Any, Any]:
    count = len(numbers["functions"])
    columns = min(3, count)
    rows = -(-count // columns)
    figure, axes = canvas(rows, columns, width=2.6 * columns, height=0.5 + height * rows)
    for axis in list(axes.flat)[count:]:
        axis.set_visible(False)
    for axis in axes[-1]:
        axis.set_xlabel("x")
    figure.suptitle(numbers["title"], x=0.01, ha="left", fontsize=10, fontweight="bold")
    return figure, axes


def _range(x: Any) -> tuple[float, float]:
    """The data and a tenth of their width on either side."""
    low, high = min(x), max(x)
    return low - 0.1 * (high - low), high + 0.1 * (high - low)


# Final values against the learning rate in the form of conflicting-biases, a grid of panels.

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
    _rates_one_legend(figure, axes)
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


def _rates_one_legend(figure: Any, axes: Any) -> None:
    """The panels share their marks: one legend below all of them, every mark once."""
    marks: dict[str, Any] = {}
    for axis in axes.flat:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            marks.setdefault(label, handle)
    figure.legend(marks.values(), marks.keys(), loc="outside lower center", ncols=min(4, len(marks)), fontsize=7.5)
