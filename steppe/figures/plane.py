"""Trajectories in the plane of two weights, over sharpness, with the solutions, the edge 2/η and marked points."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from steppe.figures.style import GREEN, INK, ORANGE, PINK, RED, canvas, styled

_BACKGROUND = ("#FFFFFF", "#DCEAF5", "#9DC4E2", "#4F93C4", "#0B5C98")


@styled
def planes(numbers: Mapping[str, Any]) -> Any:
    """A grid of planes; see `plane` for one of them.

    `numbers`: title, columns, planes, and what they share: axes w1, w2 and sharpness on their grid, solutions, flow.
    """
    columns = numbers["columns"]
    rows = -(-len(numbers["planes"]) // columns)
    figure, axes = canvas(rows, columns, width=2.75 * columns + 0.9, height=2.65 * rows + 0.6, share_x=False)
    shade = None
    for k, (axis, one) in enumerate(zip(axes.flat, numbers["planes"], strict=False)):
        shade = plane(axis, numbers, one)
        if k % columns:
            axis.set_ylabel("")
        if k + columns < len(numbers["planes"]):
            axis.set_xlabel("")
    for axis in axes.flat[len(numbers["planes"]) :]:
        axis.set_axis_off()
    figure.colorbar(shade, ax=axes, label="sharpness ‖∇²L(w)‖", shrink=0.6, pad=0.01, aspect=30)
    figure.suptitle(numbers["title"], x=0.01, ha="left", fontweight="bold", fontsize=11)
    key(figure, axes.flat[0])
    return figure


def plane(axis: Any, shared: Mapping[str, Any], one: Mapping[str, Any]) -> Any:
    """One plane on `axis`; returns the shading.

    `one`: title, path (iterates), end, limit (the value 2/η, or None) and points ({"w", "label"}: KKT points).
    """
    from matplotlib.colors import LinearSegmentedColormap

    w1, w2, sharpness = (np.asarray(shared[name], dtype=float) for name in ("w1", "w2", "sharpness"))
    ramp = LinearSegmentedColormap.from_list("sharpness", _BACKGROUND)
    shade = axis.pcolormesh(w1, w2, sharpness, cmap=ramp, shading="gouraud", rasterized=True, vmin=0)
    if one.get("limit") is not None:
        axis.contour(w1, w2, sharpness, levels=[one["limit"]], colors=[INK], linewidths=1.1, linestyles="--")
    axis.plot(*np.transpose(shared["solutions"]), color=ORANGE, linewidth=3.2, alpha=0.9, solid_capstyle="round")
    if shared.get("flow"):
        axis.plot(*np.transpose(shared["flow"]), color=GREEN, linewidth=2.0)
    path = np.asarray(one["path"], dtype=float)
    axis.plot(*path.T, color=RED, linewidth=0.7, marker="o", markersize=1.9, markeredgewidth=0)
    for point in one.get("points", ()):
        axis.plot(*point["w"], color=PINK, marker="D", markersize=6.5, markeredgecolor=INK, markeredgewidth=0.8)
    if one.get("end") is not None:
        axis.plot(*one["end"], color="white", marker="*", markersize=11, markeredgecolor=INK, markeredgewidth=0.9)
    axis.set_xlim(w1[0], w1[-1])
    axis.set_ylim(w2[0], w2[-1])
    axis.grid(False)
    axis.set_xlabel("w₁")
    axis.set_ylabel("w₂", rotation=0, labelpad=8)
    axis.set_title(one["title"], fontsize=9)
    return shade


def key(figure: Any, axis: Any) -> None:
    """What the marks mean, below the planes."""
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], color=RED, linewidth=0.7, marker="o", markersize=2.5, label="iterates"),
        Line2D([], [], color=GREEN, linewidth=2.0, label="gradient flow"),
        Line2D([], [], color=ORANGE, linewidth=3.2, label="solutions M"),
        Line2D([], [], color=INK, linestyle="--", linewidth=1.1, label="sharpness = 2/η"),
        Line2D([], [], color=PINK, marker="D", markeredgecolor=INK, linestyle="", label="KKT points"),
        Line2D([], [], color="white", marker="*", markersize=11, markeredgecolor=INK, linestyle="", label="end"),
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=6)
