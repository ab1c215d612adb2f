"""Period doubling: the orbits of a map against its parameter, and their Lyapunov exponent."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from steppe.figures.style import BLUE, FAINT, INK, ORANGE, RED, canvas, styled


@styled
def bifurcation(numbers: Mapping[str, Any]) -> Any:
    """Orbits as fine dots with exact curves over them; below, the exponent, above 0 where there is chaos.

    `numbers`: title, a, orbits (one list an a, empty where it escapes), lyapunov (null there), curves ({"a", "z",
    "label"}), places ({"at", "label"}).
    """
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
    bottom.set_xlabel("a = η/η_c = 2ηxy    (sharpness of the minimum = 2/η at a = 1)")
    bottom.set_ylim(-2.0, 1.3)
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
