"""Flatness: against the population loss and the test error, under rescalings, and the spectrum of a Hessian."""

from collections.abc import Mapping, Sequence
from typing import Any

from steppe.figures._style import BLUE, FAINT, INK, RED, canvas, headline, plain_ticks, shared_legend, styled

# Filled and open markers differ in grey too.
_STYLES: Mapping[str, Mapping[str, Any]] = {
    "plain": {"color": BLUE, "markerfacecolor": BLUE, "label": "at the rescaled parameters"},
    "invariant": {"color": RED, "markerfacecolor": "white", "label": "least over all rescalings"},
}
_MARKERS: Mapping[str, str] = {"sharpness": "o", "trace": "^"}


@styled
def flatness_loss(numbers: Mapping[str, Any]) -> Any:
    """Population loss against flatness, coloured by the correlation ν: figures 2, 3 and 4 of multi-index.

    A mark is the median over the seeds, its bars are the middle 80%. The dashed line is the loss of predicting 0.
    `numbers`: title and rows of panels, each with title, nu, flatness and loss (median, low, high), power, note.
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
            shade = _flatness_panel(axis, one, LogNorm(0.01, 1.0))
        drawn[0].set_ylabel("population loss")
    for axis in axes[-1]:
        axis.set_xlabel("flatness of the flattest interpolator, tr ∇²L")
    figure.colorbar(shade, ax=axes, label="correlation ν of the inner weights", shrink=0.8, aspect=30)
    headline(figure, numbers["title"])
    return figure


def _flatness_panel(axis: Any, one: Mapping[str, Any], norm: Any) -> Any:
    import numpy as np

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
    axis.set(xscale="log", yscale="log")
    plain_ticks(axis)
    axis.set_title(one["title"], fontsize=9)
    if one.get("note"):
        # The curves run from the lower left to the upper right, so this corner is free.
        axis.annotate(one["note"], (0.97, 0.08), xycoords="axes fraction", ha="right", fontsize=7.5, color=INK)
    return shade


_TAUS: Sequence[Mapping[str, Any]] = (
    {"color": FAINT, "marker": "s", "markeredgecolor": INK},
    {"color": BLUE, "marker": "o"},
    {"color": RED, "marker": "^", "markerfacecolor": "white"},
)


@styled
def correlations(numbers: Mapping[str, Any]) -> Any:
    """Rank correlations with their intervals: a row for each measure, a mark for each kind of pairs.

    `numbers`: title, x (the axis label) and panels, each with title, rows (labels) and marks; a mark has a label and
    values, (value, low, high) for each row.
    """
    import numpy as np

    panels = numbers["panels"]
    columns = 1 if len(panels) == 1 else 2
    height = len(panels[0]["rows"]) * 0.42 + 0.9
    figure, axes = canvas(
        -(-len(panels) // columns), columns, width=4.6 * columns, height=height * -(-len(panels) // columns)
    )
    for axis, one in zip(axes.flat, panels, strict=False):
        places = np.arange(len(one["rows"]))[::-1]
        for k, (mark, style) in enumerate(zip(one["marks"], _TAUS, strict=False)):
            value, low, high = np.asarray(mark["values"], dtype=float).T
            off = places + 0.24 * ((len(one["marks"]) - 1) / 2 - k)
            axis.errorbar(
                value, off, xerr=[value - low, high - value], linestyle="", markersize=4.5, elinewidth=1.0, capsize=2,
                label=mark["label"], **style,
            )  # fmt: skip
        axis.axvline(0, color=INK, linewidth=0.9)
        axis.set(yticks=places, yticklabels=one["rows"], xlim=(-1.05, 1.05))
        axis.set_title(one["title"], fontsize=9)
    for axis in axes[-1]:
        axis.set_xlabel(numbers["x"])
    shared_legend(figure, axes, columns=3)
    headline(figure, numbers["title"])
    return figure


@styled
def rescaling(numbers: Mapping[str, Any]) -> Any:
    """Random rescalings of neurons change the measured flatness, but not the least flatness over all rescalings.

    Each network has a panel, each rescaling a point; the text shows the spread of the points. `numbers`: title and
    panels, each with title, factors (the largest that multiplies or divides a neuron), and sharpness and trace, each
    {"plain": [...], "invariant": [...]} with one number for each factor.
    """
    count = len(numbers["panels"])
    figure, axes = canvas(1, count, width=2.75 * count, height=3.6)
    for axis, panel in zip(axes[0], numbers["panels"], strict=True):
        for measure, marker in _MARKERS.items():
            for kind, style in _STYLES.items():
                label = f"{measure}, {style['label']}"
                rest = dict(style) | {"label": label, "marker": marker, "markersize": 4.2, "linestyle": ""}
                axis.plot(panel["factors"], panel[measure][kind], **rest)
        axis.set(xscale="log", yscale="log")
        axis.set_title(panel["title"], fontsize=9)
        axis.text(0.04, 0.97, _spreads(panel), transform=axis.transAxes, va="top", fontsize=7.5, color=INK)
        axis.set_xlabel("largest factor of a neuron")
    low, high = (pick(axis.get_ylim()[k] for axis in axes[0]) for k, pick in enumerate((min, max)))
    for axis in axes[0]:
        axis.set_ylim(low, high * (high / low) ** 0.25)  # one scale for all, and room for the text
    axes[0, 0].set_ylabel("trace and largest eigenvalue of ∇²L")
    shared_legend(figure, axes, columns=4)
    headline(figure, numbers["title"])
    return figure


def _spreads(panel: Mapping[str, Any]) -> str:
    plain, invariant = (max(_spread(panel[m][kind]) for m in _MARKERS) for kind in _STYLES)
    return f"as measured: times {1 + plain:.0e}\nleast: within {invariant:.0e}".replace("e+0", "e").replace("e-0", "e-")


def _spread(values: Sequence[float]) -> float:
    """(largest − smallest)/smallest."""
    import numpy as np

    return float(np.max(values) / np.min(values) - 1)


@styled
def spectrum(numbers: Mapping[str, Any]) -> Any:
    """The spectral density of a Hessian with a band of two standard errors, and λ_max with its interval.

    `numbers`: title, grid, density, stderr, sharpness, lower, upper, confidence, and lr (or None) for the line 2/η.
    """
    import numpy as np

    figure, axes = canvas(1, 1, width=5.2, height=3.5)
    axis = axes[0, 0]
    grid, density, error = (np.asarray(numbers[name], dtype=float) for name in ("grid", "density", "stderr"))
    floor = density.max() * 1e-6
    low, high = np.maximum(density - 2 * error, floor), np.maximum(density + 2 * error, floor)
    axis.fill_between(grid, low, high, color=BLUE, alpha=0.25, linewidth=0)
    axis.plot(grid, np.maximum(density, floor), color=BLUE, label="density, ± 2 standard errors")
    axis.set(yscale="log", ylim=(floor, 3 * density.max()))
    axis.axvspan(numbers["lower"], numbers["upper"], color=RED, alpha=0.25, linewidth=0)
    width = numbers["upper"] - numbers["lower"]
    text = f"λ_max = {numbers['sharpness']:.4g}, {numbers['confidence']:.0%} interval of width {width:.1g}"
    axis.axvline(numbers["sharpness"], color=RED, linewidth=1.2, label=text)
    if numbers.get("lr") is not None:
        axis.axvline(2 / numbers["lr"], color=INK, linestyle="--", linewidth=1.0, label="2/η")
    axis.set(xlabel="eigenvalue of ∇²L", ylabel="density", title=numbers["title"])
    # Below the axis: lines and peaks can be anywhere on it.
    figure.legend(loc="outside lower center", ncols=2)
    return figure
