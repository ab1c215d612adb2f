"""Flatness against population loss, coloured by the correlation ν: figures 2, 3 and 4 of multi-index."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from steppe.figures.plain_ticks import plain_ticks
from steppe.figures.style import FAINT, INK, canvas, styled


@styled
def flatness_loss(numbers: Mapping[str, Any]) -> Any:
    """`numbers`: title and rows of panels, each with title, nu, flatness and loss (median, low, high), power, note.

    A mark is the median over the seeds, its bars the middle 80%; dashed: the loss of predicting 0.
    """
    from matplotlib.colors import LogNorm

    rows = numbers["rows"]
    columns = max(len(row) for row in rows)
    figure, axes = canvas(len(rows), columns, width=3.3 * columns + 0.6, height=2.9 * len(rows), share_x=False)
    shade = None
    for drawn, row in zip(axes, rows, strict=True):
        for axis in drawn[len(row) :]:
            axis.set_axis_off()
        for axis, one in zip(drawn, row, strict=False):
            shade = _panel(axis, one, LogNorm(0.01, 1.0))
        drawn[0].set_ylabel("population loss")
    for axis in axes[-1]:
        axis.set_xlabel("flatness of the flattest interpolator, tr ∇²L")
    figure.colorbar(shade, ax=axes, label="correlation ν of the inner weights", shrink=0.8, aspect=30)
    figure.suptitle(numbers["title"], x=0.01, ha="left", fontweight="bold", fontsize=11)
    return figure


def _panel(axis: Any, one: Mapping[str, Any], norm: Any) -> Any:
    nu = np.asarray(one["nu"])
    x, y = (np.asarray(one[name]["median"]) for name in ("flatness", "loss"))
    bars = [
        np.array([m - np.asarray(one[name]["low"]), np.asarray(one[name]["high"]) - m])
        for name, m in (("flatness", x), ("loss", y))
    ]
    axis.errorbar(x, y, xerr=bars[0], yerr=bars[1], linestyle="", color=FAINT, elinewidth=0.8, zorder=1)
    axis.plot(x, y, color=FAINT, linewidth=0.8, zorder=1)
    shade = axis.scatter(x, y, c=nu, cmap="viridis", norm=norm, s=26, edgecolors=INK, linewidths=0.3, zorder=2)
    axis.axhline(one["power"], color=INK, linewidth=0.9, linestyle="--")
    axis.set_xscale("log")
    axis.set_yscale("log")
    plain_ticks(axis)
    axis.set_title(one["title"], fontsize=9)
    if one.get("note"):
        # Curves run from the lower left to the upper right.
        axis.annotate(one["note"], (0.97, 0.08), xycoords="axes fraction", ha="right", fontsize=7.5, color=INK)
    return shade
