"""What random rescalings of neurons do to flatness as it is measured, and not to the least flatness over them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steppe.figures.style import BLUE, INK, RED, canvas, styled

# Filled against open: the two remain apart in grey.
_STYLES: Mapping[str, Mapping[str, Any]] = {
    "plain": {"color": BLUE, "markerfacecolor": BLUE, "label": "at the rescaled parameters"},
    "invariant": {"color": RED, "markerfacecolor": "white", "label": "least over all rescalings"},
}
_MARKERS: Mapping[str, str] = {"sharpness": "o", "trace": "^"}


@styled
def rescaling(numbers: Mapping[str, Any]) -> Any:
    """A panel for each network, a point for each random rescaling, and how far the points of each kind spread.

    `numbers`: title and panels, each with title, factors (the largest that a neuron may be multiplied or divided by),
    and sharpness and trace, each {"plain": [...], "invariant": [...]}, one number for each of the factors.
    """
    count = len(numbers["panels"])
    figure, axes = canvas(1, count, width=2.75 * count, height=3.6)
    for axis, panel in zip(axes[0], numbers["panels"], strict=True):
        for measure, marker in _MARKERS.items():
            for kind, style in _STYLES.items():
                label = f"{measure}, {style['label']}"
                rest = dict(style) | {"label": label, "marker": marker, "markersize": 4.2, "linestyle": ""}
                axis.plot(panel["factors"], panel[measure][kind], **rest)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_title(panel["title"], fontsize=9)
        axis.text(0.04, 0.97, _spreads(panel), transform=axis.transAxes, va="top", fontsize=7.5, color=INK)
        axis.set_xlabel("largest factor of a neuron")
    low, high = (pick(axis.get_ylim()[k] for axis in axes[0]) for k, pick in enumerate((min, max)))
    for axis in axes[0]:
        axis.set_ylim(low, high * (high / low) ** 0.25)  # one scale for all, and room for the text
    axes[0, 0].set_ylabel("trace and largest eigenvalue of ∇²L")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    figure.suptitle(numbers["title"], x=0.01, ha="left", fontweight="bold", fontsize=11)
    return figure


def _spreads(panel: Mapping[str, Any]) -> str:
    plain, invariant = (max(_spread(panel[m][kind]) for m in _MARKERS) for kind in _STYLES)
    return f"as measured: times {1 + plain:.0e}\nleast: within {invariant:.0e}".replace("e+0", "e").replace("e-0", "e-")


def _spread(values: Sequence[float]) -> float:
    """(largest − smallest)/smallest."""
    return float(np.max(values) / np.min(values) - 1)
