"""A two-layer net in the plane: its output as colour, training points, and where each neuron begins to fire."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from steppe.figures.style import INK, canvas, styled


@styled
def memorising(numbers: Mapping[str, Any]) -> Any:
    """`numbers`: title, side (grid coordinates), output on the grid, x, y, W1, b1."""
    figure, axes = canvas(1, 1, width=4.9, height=4.5)
    axis = axes[0, 0]
    output, side = np.asarray(numbers["output"]), np.asarray(numbers["side"])
    reach = np.abs(np.asarray(numbers["y"])).max()
    shown = axis.pcolormesh(side, side, output, cmap="RdBu_r", vmin=-1.5 * reach, vmax=1.5 * reach, shading="gouraud")
    figure.colorbar(shown, ax=axis, label="f(x)", shrink=0.85)
    turn = np.linspace(0, 2 * np.pi, 200)
    axis.plot(np.cos(turn), np.sin(turn), color=INK, linewidth=0.7, alpha=0.6)
    for (a, b), c in zip(numbers["W1"], numbers["b1"], strict=True):
        axis.axline((-a * c / (a * a + b * b), -b * c / (a * a + b * b)), slope=-a / b if b else np.inf,
                    color=INK, linewidth=0.7, linestyle=(0, (3, 2)))  # fmt: skip
    x, y = np.asarray(numbers["x"]), np.asarray(numbers["y"])
    for sign, marker in ((1, "P"), (-1, "o")):
        chosen = np.sign(y) == sign
        axis.scatter(*x[chosen].T, marker=marker, s=48, color=INK, edgecolors="white", zorder=3,
                     label=f"y = {sign:+d}")  # fmt: skip
    axis.set(xlim=(side[0], side[-1]), ylim=(side[0], side[-1]), aspect="equal", xlabel="x₁", ylabel="x₂")
    axis.grid(False)
    axis.legend(loc="lower right", frameon=True)
    # Above the colour bar too, which a title of the axes would run into.
    figure.suptitle(numbers["title"], x=0.01, ha="left", fontweight="bold", fontsize=11)
    return figure
