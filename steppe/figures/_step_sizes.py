"""What the step size does: sharpness and smoothness of the minimum, and the functions that training finds."""

from collections.abc import Mapping
from typing import Any

from steppe.figures._style import BLUE, FAINT, GREEN, INK, ORANGE, canvas, headline, shared_legend, styled

# Three different markers, so that the series differ without colour too.
_SERIES = (
    ("sharpness", "minimum that gradient descent found", BLUE, "o"),
    ("flattest", "its flattest implementation", ORANGE, "^"),
    ("bound", "lower bound 1 + 2 ∫|f″| g", GREEN, "x"),
)
_MARKS = (("failed", "did not converge", "|"), ("excluded", "excluded: converged during the warm-up", "2"))


@styled
def sharpness_curves(numbers: Mapping[str, Any]) -> Any:
    """λ_max of minima against the step size, with that of their flattest implementation, a lower bound, and 2/η.

    `numbers`: title, and panels. A panel has title, the columns lr, sharpness, flattest and bound of the runs that
    count, and the step sizes of the other runs: failed (did not converge) and excluded (converged in the warm-up).
    """
    import numpy as np

    panels = numbers["panels"]
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = canvas(rows, columns, width=max(5.0, 3.0 * columns), height=1.0 + 2.5 * rows, share_x=False)
    for axis, panel in zip(axes.flat, panels, strict=False):
        lr = np.asarray(panel["lr"], dtype=float)
        everywhere = np.sort(np.concatenate([lr, panel["failed"], panel["excluded"]]))
        for name, label, colour, marker in _SERIES:
            axis.plot(lr, panel[name], color=colour, marker=marker, markersize=2.5, linestyle="none", label=label)
        # Above the points, which would cover it where runs end at the edge.
        limit = {"color": INK, "linestyle": "--", "linewidth": 1.0, "zorder": 3}
        axis.plot(everywhere, 2 / everywhere, label="2/η, limit of stability", **limit)
        for name, label, marker in _MARKS:
            if len(panel[name]):
                at = np.full(len(panel[name]), 0.02)
                axis.plot(
                    panel[name], at, color=INK, marker=marker, markersize=5, markeredgewidth=0.7, linestyle="none",
                    label=label, transform=axis.get_xaxis_transform(),
                )  # fmt: skip
        axis.set(xscale="log", yscale="log", title=panel["title"])
    for axis in list(axes.flat)[len(panels) :]:
        axis.set_visible(False)
    for axis in axes[-1]:
        axis.set_xlabel("step size η")
    for axis in axes[:, 0]:
        axis.set_ylabel("λ_max ∇²L")
    shared_legend(figure, axes, columns=2)
    if numbers.get("title"):
        headline(figure, numbers["title"], size=10)
    return figure


@styled
def smoothness(numbers: Mapping[str, Any]) -> Any:
    """∫|f″| g against the step size with its bound 1/η − ½, and ∫|f″| at the centre of the data.

    `numbers`: title, lr, weighted, centre.
    """
    import numpy as np

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
        axis.set(xscale="log", yscale="log", xlabel="step size η")
        axis.grid(color=FAINT, alpha=0.4)
    return figure


@styled
def interpolants(numbers: Mapping[str, Any]) -> Any:
    """Functions through the same training points, one panel for each.

    `numbers`: title, x, y (training points), and functions, each with label, at, value (the corners of its graph).
    """
    figure, axes = _functions(numbers, height=1.7)
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
    """f″ of each function as stems, one panel for each with its own scale, and the weight g in grey.

    `numbers`: title, x, grid and weight (g on a grid), and functions, each with label, knots, jumps.
    """
    import numpy as np

    figure, axes = _functions(numbers, height=1.5)
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
        axis.set(xlim=(low, high), ylim=(-1.15 * largest, 1.15 * largest))
    return figure


@styled
def two_trainings(numbers: Mapping[str, Any]) -> Any:
    """Two runs: their losses against steps, and the functions at their ends with the training points.

    `numbers`: title, x, y, and runs, each with label, step, loss, at, value.
    """
    figure, axes = canvas(1, 2, width=7.2, height=3.0, share_x=False)
    left, right = axes[0]
    for run, colour, dash in zip(numbers["runs"], (INK, GREEN), ("-", (0, (5, 1))), strict=True):
        left.plot(run["step"], run["loss"], color=colour, linestyle=dash, label=run["label"])
        right.plot(run["at"], run["value"], color=colour, linestyle=dash, linewidth=1.3)
    right.plot(numbers["x"], numbers["y"], color=BLUE, marker="o", markersize=4, linestyle="none", zorder=3)
    right.set_xlim(*_range(numbers["x"]))
    left.set(xscale="log", yscale="log", xlabel="steps", ylabel="loss")
    right.set(xlabel="x", ylabel="f(x)")
    left.legend(loc="lower left")
    left.set_title(numbers["title"])
    return figure


def _functions(numbers: Mapping[str, Any], *, height: float) -> tuple[Any, Any]:
    count = len(numbers["functions"])
    columns = min(3, count)
    rows = -(-count // columns)
    figure, axes = canvas(rows, columns, width=2.6 * columns, height=0.5 + height * rows)
    for axis in list(axes.flat)[count:]:
        axis.set_visible(False)
    for axis in axes[-1]:
        axis.set_xlabel("x")
    headline(figure, numbers["title"], size=10)
    return figure, axes


def _range(x: Any) -> tuple[float, float]:
    """The interval of the data, with a tenth of its width added on each side."""
    low, high = min(x), max(x)
    return low - 0.1 * (high - low), high + 0.1 * (high - low)
