"""Points of a triangle: the solutions of a network of three weights, by the share each weight has in the output."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from steppe.figures.style import GREEN, INK, PINK, canvas, styled

_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])


@styled
def simplex(numbers: Mapping[str, Any]) -> Any:
    """Two triangles over one shading each: sharpness and risk; on both the ends of training, the flow and the optimum.

    `numbers`: title, corners (three labels), grid (shares), panels ({"title", "values", "levels"}), ends ({"p", "rate"}
    shares and rates of finished runs), flow (shares along it), kkt ({"p", "rate"}).
    """
    figure, axes = canvas(1, 2, width=9.6, height=4.6, share_x=False)
    grid = _place(numbers["grid"])
    ends, rates = _place([e["p"] for e in numbers["ends"]]), np.array([e["rate"] for e in numbers["ends"]])
    dots = None
    for axis, panel in zip(axes[0], numbers["panels"], strict=True):
        axis.set_axis_off()
        axis.set_aspect("equal")
        values = np.asarray(panel["values"], dtype=float)
        axis.tricontourf(*grid.T, values, levels=40, cmap="Blues", alpha=0.75)
        lines = axis.tricontour(*grid.T, values, levels=panel["levels"], colors=[INK], linewidths=0.6, linestyles="--")
        axis.clabel(lines, fontsize=7, fmt="%.3g")
        axis.plot(*_CORNERS[[0, 1, 2, 0]].T, color=INK, linewidth=1.4)
        axis.plot(*_place(numbers["flow"]).T, color=GREEN, linewidth=2.2, label="gradient flow (end: on M)")
        axis.plot(*_place([k["p"] for k in numbers["kkt"]]).T, color=PINK, linewidth=2.6, label="least risk, S ≤ 2/η")
        dots = axis.scatter(*ends.T, c=rates, cmap="autumn", s=17, edgecolor=INK, linewidth=0.4, zorder=5,
                            label="end of gradient descent")  # fmt: skip
        axis.set_xlim(-0.12, 1.12)
        axis.set_ylim(-0.1, 1.0)
        axis.text(-0.1, 0.93, panel["title"], fontweight="bold")
        for (x, y), label in zip(_CORNERS, numbers["corners"], strict=True):
            axis.text(x, y + (0.03 if y else -0.06), label, ha="center", fontsize=8, color=INK)
    figure.colorbar(dots, ax=axes, label="η/η₁ of the run", shrink=0.7, aspect=30)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    figure.suptitle(numbers["title"], x=0.01, ha="left", fontweight="bold", fontsize=11)
    return figure


def _place(shares: Any) -> Any:
    return np.asarray(shares, dtype=float) @ _CORNERS
