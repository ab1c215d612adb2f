"""The spectral density of a Hessian, with λ_max and its interval."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from steppe.figures.style import BLUE, INK, RED, canvas, styled


@styled
def spectrum(numbers: Mapping[str, Any]) -> Any:
    """Density on a logarithmic axis with a band of two standard errors; λ_max as a line, its interval as a band.

    `numbers`: title, grid, density, stderr, sharpness, lower, upper, confidence, and lr (or None) for the line 2/η.
    """
    figure, axes = canvas(1, 1, width=5.2, height=3.5)
    axis = axes[0, 0]
    grid, density, error = (np.asarray(numbers[name], dtype=float) for name in ("grid", "density", "stderr"))
    floor = density.max() * 1e-6
    low, high = np.maximum(density - 2 * error, floor), np.maximum(density + 2 * error, floor)
    axis.fill_between(grid, low, high, color=BLUE, alpha=0.25, linewidth=0)
    axis.plot(grid, np.maximum(density, floor), color=BLUE, label="density, ± 2 standard errors")
    axis.set_yscale("log")
    axis.set_ylim(floor, 3 * density.max())
    axis.axvspan(numbers["lower"], numbers["upper"], color=RED, alpha=0.25, linewidth=0)
    width = numbers["upper"] - numbers["lower"]
    text = f"λ_max = {numbers['sharpness']:.4g}, {numbers['confidence']:.0%} interval of width {width:.1g}"
    axis.axvline(numbers["sharpness"], color=RED, linewidth=1.2, label=text)
    if numbers.get("lr") is not None:
        axis.axvline(2 / numbers["lr"], color=INK, linestyle="--", linewidth=1.0, label="2/η")
    axis.set_xlabel("eigenvalue of ∇²L")
    axis.set_ylabel("density")
    axis.set_title(numbers["title"])
    # Below: lines and peaks may stand anywhere on the axis.
    figure.legend(loc="outside lower center", ncols=2)
    return figure
