"""Sharpness of minima against the step size that led to them, with the limit 2/η."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from steppe.figures.style import BLUE, FAINT, GREEN, INK, ORANGE, canvas, styled


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
