"""Figure 4 of conflicting-biases: the network, four planes, and the risk between them."""

from collections.abc import Mapping
from typing import Any

from steppe.figures.panels import panel
from steppe.figures.plane import key, plane
from steppe.figures.style import BLUE, FAINT, INK, ORANGE, canvas, styled


@styled
def diagonal(numbers: Mapping[str, Any]) -> Any:
    """Network, plane, plane / risk, plane, plane. `numbers`: as for `planes`, with four planes, and risk, a panel."""
    figure, axes = canvas(2, 3, width=10.2, height=6.6, share_x=False)
    network(axes[0, 0])
    spots = (axes[0, 1], axes[0, 2], axes[1, 1], axes[1, 2])
    shade = None
    for axis, one in zip(spots, numbers["planes"], strict=True):
        shade = plane(axis, numbers, one)
    panel(axes[1, 0], numbers["risk"])
    figure.colorbar(shade, ax=axes[:, 2], label="sharpness ‖∇²L(w)‖", shrink=0.7, aspect=30)
    figure.suptitle(numbers["title"], x=0.01, ha="left", fontweight="bold", fontsize=11)
    key(figure, axes[0, 1])
    return figure


def network(axis: Any) -> None:
    """Two inputs, each multiplied twice by its own weight, and their sum."""
    from matplotlib.patches import Circle

    axis.set_axis_off()
    axis.set_xlim(0, 10)
    axis.set_ylim(0, 7)
    axis.set_aspect("equal")
    out = (8.6, 3.5)
    for row, (y, colour) in enumerate(((5.2, BLUE), (1.8, ORANGE)), start=1):
        places = [(1.2, y), (4.6, y)]
        for start, end in ((places[0], places[1]), (places[1], out)):
            arrow = {"arrowstyle": "-|>", "color": colour, "shrinkA": 15, "shrinkB": 15, "lw": 1.8}
            axis.annotate("", end, start, arrowprops=arrow)
            middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2 + (0.55 if y > out[1] else -0.9))
            axis.text(*middle, f"w{'₁₂'[row - 1]}", ha="center", color=colour, fontsize=11)
        for place, text in zip(places, (f"x{'₁₂'[row - 1]}", ""), strict=True):
            axis.add_patch(Circle(place, 0.62, facecolor="white", edgecolor=INK, linewidth=1.2, zorder=3))
            axis.text(*place, text, ha="center", va="center", fontsize=11, zorder=4)
    axis.add_patch(Circle(out, 0.62, facecolor=FAINT, edgecolor=INK, linewidth=1.2, zorder=3))
    axis.text(*out, "Σ", ha="center", va="center", fontsize=12, zorder=4)
    axis.set_title("a · f(x) = w₁² x₁ + w₂² x₂", fontsize=9)
