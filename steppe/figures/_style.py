"""The style of all figures: palette, ticks, panels, files."""

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np

# One style for every figure: colours that colour-blind readers can tell apart, readable in greyscale.

P = ParamSpec("P")
T = TypeVar("T")

# Okabe and Ito's palette, ordered so that neighbours differ in lightness too.
BLUE, ORANGE, GREEN, PINK, SKY, RED = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"
INK, FAINT = "#222222", "#B8B8B8"

STYLE: Mapping[str, Any] = {
    "figure.dpi": 110,
    "savefig.dpi": 200,
    "savefig.bbox": "tight",
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "pdf.fonttype": 42,
    # The same numbers give the same bytes: no date, no random ids.
    "svg.hashsalt": "steppe",
}


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """Run a drawing function in the house style, leaving the user's own settings alone."""

    @functools.wraps(draw)
    def in_style(*args: P.args, **kwargs: P.kwargs) -> T:
        import matplotlib

        with matplotlib.rc_context(dict(STYLE)):
            return draw(*args, **kwargs)

    return in_style


def canvas(rows: int, columns: int, *, width: float, height: float, share_x: bool = True) -> tuple[Any, Any]:
    """A figure and its axes, without a display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, sharex=share_x, squeeze=False)


# Ticks on a logarithmic axis that spans less than two decades: 1, 2, 5 times powers of ten, as plain numbers, and some between where that leaves too few.


def plain_ticks(axis: Any) -> None:
    """On both axes of a drawn panel, where they are logarithmic."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    for side, limits in ((axis.xaxis, axis.get_xlim()), (axis.yaxis, axis.get_ylim())):
        low, high = sorted(limits)
        if side.get_scale() != "log" or high / low > 100:
            continue
        powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
        steps = (1, 2, 5) if high / low > 6 else (1, 1.5, 2, 3, 4, 5, 7)
        side.set_major_locator(FixedLocator([p * s for p in powers for s in steps if low <= p * s <= high]))
        side.set_minor_locator(NullLocator())
        side.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))


# A figure on disk: PNG to look at, PDF to paste into a paper, JSON of the numbers drawn.


@styled
def save(figure: Any, numbers: Mapping[str, Any], stem: Path, *, pdf: bool = True) -> list[Path]:
    """Write stem.png, stem.pdf and stem.json; the same numbers give the same bytes."""
    text = json.dumps(numbers, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    stem.parent.mkdir(parents=True, exist_ok=True)
    png, vector, data = (stem.with_name(stem.name + ending) for ending in (".png", ".pdf", ".json"))
    # The layout is most of the work: it is found once, not again for each format.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    figure.savefig(png, metadata={"Software": None})
    data.write_text(text, encoding="utf-8")
    if not pdf:
        return [png, data]
    figure.savefig(vector, metadata={"CreationDate": None, "ModDate": None})
    return [png, vector, data]


# A row of panels, or two: lines, points and marked places against one quantity each.

COLOURS = {
    "blue": BLUE, "orange": ORANGE, "green": GREEN, "pink": PINK, "sky": SKY, "red": RED, "ink": INK, "faint": FAINT,
}  # fmt: skip
_KINDS: Mapping[str, Mapping[str, Any]] = {
    "line": {"linewidth": 1.8},
    "thin": {"linewidth": 0.9},
    "dashed": {"linewidth": 1.3, "linestyle": "--"},
    "dotted": {"linewidth": 1.3, "linestyle": ":"},
    "points": {"linestyle": "", "marker": "o", "markersize": 3.2, "markeredgewidth": 0},
    "crosses": {"linestyle": "", "marker": "x", "markersize": 4.5, "markeredgewidth": 1.1},
}
# More panels than this are drawn in two rows.
WIDEST = 4


@styled
def panels(numbers: Mapping[str, Any]) -> Any:
    """`numbers`: title and panels, each drawn by `panel`."""
    count = len(numbers["panels"])
    rows = 1 if count <= WIDEST else 2
    columns = -(-count // rows)
    figure, axes = canvas(rows, columns, width=3.9 * columns, height=3.5 * rows, share_x=False)
    for axis, one in zip(axes.flat, numbers["panels"], strict=False):
        panel(axis, one)
    for axis in axes.flat[count:]:
        axis.remove()
    figure.suptitle(numbers["title"], x=0.01, ha="left", fontweight="bold", fontsize=11)
    return figure


def panel(axis: Any, one: Mapping[str, Any]) -> None:
    """One panel on `axis`.

    `one`: x and y (labels), series, and if wanted title, log ("x", "y" or "xy"), places, spans, limits, legend,
    legend_columns.
    A series has x, y, kind (line, thin, dashed, dotted, points, crosses), colour, and if wanted label and error;
    a place {"at", "label", "low"} is a dotted vertical line, labelled above or below; a span {"from", "to", "label"} a
    shaded stretch.
    """
    for span in one.get("spans", ()):
        axis.axvspan(span["from"], span["to"], color=COLOURS[span.get("colour", "faint")], alpha=0.22, linewidth=0)
        middle = (span["from"] + span["to"]) / 2
        axis.annotate(
            span["label"], (middle, 0.02), xycoords=("data", "axes fraction"), ha="center", fontsize=7.5, color=INK
        )
    for series in one["series"]:
        x, y = (np.asarray(series[name], dtype=float) for name in ("x", "y"))
        style = dict(_KINDS[series["kind"]]) | {"color": COLOURS[series["colour"]], "label": series.get("label")}
        if "error" in series:
            axis.errorbar(x, y, yerr=series["error"], capsize=2, elinewidth=0.9, **style)
        else:
            axis.plot(x, y, **style)
    for name in one.get("log", ""):
        getattr(axis, f"set_{name}scale")("log")
    for name, (low, high) in one.get("limits", {}).items():
        getattr(axis, f"set_{name}lim")(low, high)
    plain_ticks(axis)
    for place in one.get("places", ()):
        axis.axvline(place["at"], color=INK, linewidth=0.9, linestyle=(0, (1, 2)))
        low = place.get("low", False)
        axis.annotate(
            place["label"], (place["at"], 0.02 if low else 0.98), xycoords=("data", "axes fraction"), xytext=(3, 0),
            textcoords="offset points", va="bottom" if low else "top", fontsize=8, color=INK,
        )  # fmt: skip
    axis.set_xlabel(one["x"])
    axis.set_ylabel(one["y"])
    axis.set_title(one.get("title", ""), fontsize=9)
    if any(series.get("label") for series in one["series"]):
        axis.legend(loc=one.get("legend", "best"), ncols=one.get("legend_columns", 1))
