"""First-layer weights: neurons in the plane of the first two inputs, a table of the longest, norms of the columns."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from steppe.figures.style import BLUE, FAINT, INK, ORANGE, canvas, styled


@styled
def neurons(numbers: Mapping[str, Any]) -> Any:
    """`numbers`: title and runs, each with seed, neurons (m, 2), rows (4, 3) and columns (d,); the first is drawn."""
    run = numbers["runs"][0]
    figure, axes = canvas(1, 3, width=10.4, height=3.4, share_x=False)
    plane, text, bars = axes[0]
    weights = np.asarray(run["neurons"])
    plane.scatter(weights[:, 0], weights[:, 1], s=12, color=BLUE, alpha=0.5, linewidths=0)
    rows = np.asarray(run["rows"])
    plane.scatter(rows[:, 0], rows[:, 1], s=46, facecolors="none", edgecolors=ORANGE, linewidths=1.4)
    reach = 1.15 * np.abs(weights).max()
    for slope in (1, -1):
        plane.plot([-reach, reach], [-slope * reach, slope * reach], color=FAINT, linewidth=0.8, zorder=0)
    plane.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="W₁[1]", ylabel="W₁[2]")
    text.axis("off")
    cells = [[f"{a:.3f}", f"{b:.3f}", f"{c:.2f}"] for a, b, c in rows]
    drawn = text.table(cells, colLabels=["W₁[1]", "W₁[2]", "‖W₁[3:d]‖"], loc="center", edges="horizontal")
    drawn.scale(1, 1.5)
    columns = np.asarray(run["columns"])
    colours = [ORANGE, ORANGE, *[BLUE] * (len(columns) - 2)]
    bars.bar(np.arange(1, len(columns) + 1), columns, color=colours, width=0.8)
    bars.set(xlabel="input", ylabel="norm of the column of W₁")
    plane.set_title(f"neurons (seed {run['seed']})", color=INK)
    text.set_title("the four longest")
    bars.set_title("columns")
    figure.suptitle(numbers["title"], x=0.01, ha="left", fontweight="bold", fontsize=11)
    return figure
