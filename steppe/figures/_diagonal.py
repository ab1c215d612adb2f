"""Theory of the diagonal network: planes of two weights, triangles of three, and period doubling."""

from collections.abc import Mapping
from typing import Any

from steppe.figures._panels import panel
from steppe.figures._style import BLUE, FAINT, GREEN, INK, ORANGE, PINK, RED, canvas, headline, shared_legend, styled

_BACKGROUND = ("#FFFFFF", "#DCEAF5", "#9DC4E2", "#4F93C4", "#0B5C98")
_CORNERS = ((0.0, 0.0), (1.0, 0.0), (0.5, 3**0.5 / 2))


@styled
def planes(numbers: Mapping[str, Any]) -> Any:
    """Trajectories in the plane of two weights, over the sharpness; `_plane` draws one of them.

    `numbers`: title, columns, planes, and the shared parts: w1, w2, sharpness on their grid, solutions and flow.
    """
    columns = numbers["columns"]
    rows = -(-len(numbers["planes"]) // columns)
    figure, axes = canvas(rows, columns, width=2.75 * columns + 0.9, height=2.65 * rows + 0.6, share_x=False)
    shade = None
    for k, (axis, one) in enumerate(zip(axes.flat, numbers["planes"], strict=False)):
        shade = _plane(axis, numbers, one)
        if k % columns:
            axis.set_ylabel("")
        if k + columns < len(numbers["planes"]):
            axis.set_xlabel("")
    for axis in axes.flat[len(numbers["planes"]) :]:
        axis.set_axis_off()
    figure.colorbar(shade, ax=axes, label="sharpness ‖∇²L(w)‖", shrink=0.6, pad=0.01, aspect=30)
    headline(figure, numbers["title"])
    _key(figure, axes.flat[0])
    return figure


def _plane(axis: Any, shared: Mapping[str, Any], one: Mapping[str, Any]) -> Any:
    """Draw one plane on `axis`. Returns the shading, for the colour bar.

    `one`: title, path (iterates), end, limit (the value 2/η, or None) and points ({"w", "label"}: KKT points).
    """
    import numpy as np
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
    axis.set(xlim=(w1[0], w1[-1]), ylim=(w2[0], w2[-1]))
    axis.grid(False)
    axis.set_xlabel("w₁")
    axis.set_ylabel("w₂", rotation=0, labelpad=8)
    axis.set_title(one["title"], fontsize=9)
    return shade


def _key(figure: Any, axis: Any) -> None:
    """The legend of the marks, below the planes."""
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


@styled
def diagonal(numbers: Mapping[str, Any]) -> Any:
    """The network, four planes and the risk, as in figure 4 of conflicting-biases.

    `numbers`: as for `planes`, with four planes, and risk, a panel of `panels`.
    """
    figure, axes = canvas(2, 3, width=10.2, height=6.6, share_x=False)
    _network(axes[0, 0])
    spots = (axes[0, 1], axes[0, 2], axes[1, 1], axes[1, 2])
    shade = None
    for axis, one in zip(spots, numbers["planes"], strict=True):
        shade = _plane(axis, numbers, one)
    panel(axes[1, 0], numbers["risk"])
    figure.colorbar(shade, ax=axes[:, 2], label="sharpness ‖∇²L(w)‖", shrink=0.7, aspect=30)
    headline(figure, numbers["title"])
    _key(figure, axes[0, 1])
    return figure


def _network(axis: Any) -> None:
    """A drawing of two inputs, each multiplied twice by its weight, and their sum."""
    from matplotlib.patches import Circle

    axis.set_axis_off()
    axis.set(xlim=(0, 10), ylim=(0, 7), aspect="equal")
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


@styled
def simplex(numbers: Mapping[str, Any]) -> Any:
    """The solutions of a network of three weights as points of a triangle: the share of each weight in the output.

    One triangle is shaded by the sharpness, the other one by the risk. Both show the ends of training, the flow and the
    optimum. `numbers`: title, corners (three labels), grid (shares), panels ({"title", "values", "levels"}), ends
    ({"p", "rate"}: shares and rates of finished runs), flow (shares along it), kkt ({"p", "rate"}).
    """
    import numpy as np

    figure, axes = canvas(1, 2, width=9.6, height=4.6, share_x=False)
    grid = _place(numbers["grid"])
    ends, rates = _place([e["p"] for e in numbers["ends"]]), np.array([e["rate"] for e in numbers["ends"]])
    dots = None
    for axis, one in zip(axes[0], numbers["panels"], strict=True):
        axis.set_axis_off()
        axis.set_aspect("equal")
        values = np.asarray(one["values"], dtype=float)
        axis.tricontourf(*grid.T, values, levels=40, cmap="Blues", alpha=0.75)
        lines = axis.tricontour(*grid.T, values, levels=one["levels"], colors=[INK], linewidths=0.6, linestyles="--")
        axis.clabel(lines, fontsize=7, fmt="%.3g")
        axis.plot(*zip(*_CORNERS, _CORNERS[0], strict=True), color=INK, linewidth=1.4)
        axis.plot(*_place(numbers["flow"]).T, color=GREEN, linewidth=2.2, label="gradient flow (end: on M)")
        axis.plot(*_place([k["p"] for k in numbers["kkt"]]).T, color=PINK, linewidth=2.6, label="least risk, S ≤ 2/η")
        dots = axis.scatter(*ends.T, c=rates, cmap="autumn", s=17, edgecolor=INK, linewidth=0.4, zorder=5,
                            label="end of gradient descent")  # fmt: skip
        axis.set(xlim=(-0.12, 1.12), ylim=(-0.1, 1.0))
        axis.text(-0.1, 0.93, one["title"], fontweight="bold")
        for (x, y), label in zip(_CORNERS, numbers["corners"], strict=True):
            axis.text(x, y + (0.03 if y else -0.06), label, ha="center", fontsize=8, color=INK)
    figure.colorbar(dots, ax=axes, label="η/η₁ of the run", shrink=0.7, aspect=30)
    shared_legend(figure, axes, columns=3)
    headline(figure, numbers["title"])
    return figure


def _place(shares: Any) -> Any:
    import numpy as np

    return np.asarray(shares, dtype=float) @ np.asarray(_CORNERS)


@styled
def bifurcation(numbers: Mapping[str, Any]) -> Any:
    """Period doubling: the orbits of a map against its parameter a, and below them their Lyapunov exponent.

    Orbits are fine dots under exact curves. The exponent is above 0 where the map is chaotic. `numbers`: title, a,
    orbits (one list for each a, empty if it escapes), lyapunov (null if it escapes), curves ({"a", "z", "label"}),
    places ({"at", "label"}).
    """
    import numpy as np

    figure, axes = canvas(2, 1, width=8.6, height=6.2)
    top, bottom = axes[:, 0]
    a = np.asarray(numbers["a"], dtype=float)
    sizes = [len(orbit) for orbit in numbers["orbits"]]
    top.plot(
        np.repeat(a, sizes), np.concatenate([np.asarray(o, dtype=float) for o in numbers["orbits"]]),
        linestyle="", marker=",", color=BLUE, alpha=0.35, rasterized=True,
    )  # fmt: skip
    for curve, style in zip(numbers["curves"], ("-", "--", (0, (4, 1, 1, 1))), strict=False):
        top.plot(curve["a"], curve["z"], color=ORANGE, linestyle=style, linewidth=2.0, label=curve["label"])
    top.set_ylabel("w √(x/y) after many steps")
    top.set_title(numbers["title"], pad=18)
    top.legend(loc="lower left")
    exponents = np.array([np.nan if v is None else v for v in numbers["lyapunov"]], dtype=float)
    bottom.axhline(0, color=FAINT, linewidth=1.0)
    bottom.plot(a, exponents, color=INK, linewidth=0.8)
    bottom.fill_between(a, 0, exponents, where=exponents > 0, color=RED, alpha=0.5, linewidth=0)
    bottom.set_ylabel("Lyapunov exponent (red: chaos)")
    bottom.set(xlabel="a = η/η_c = 2ηxy    (sharpness of the minimum = 2/η at a = 1)", ylim=(-2.0, 1.3))
    for axis in (top, bottom):
        axis.set_xlim(a[0], a[-1])
        for place in numbers["places"]:
            axis.axvline(place["at"], color=INK, linewidth=0.9, linestyle=(0, (1, 2)))
    for place in numbers["places"]:
        top.annotate(
            place["label"], (place["at"], 1.01), xycoords=("data", "axes fraction"), ha="center", va="bottom",
            fontsize=8, color=INK,
        )  # fmt: skip
    return figure
