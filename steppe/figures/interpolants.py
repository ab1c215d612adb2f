"""Functions that went through the same points, and where they bend."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from steppe.figures.style import BLUE, FAINT, GREEN, INK, ORANGE, canvas, styled


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
