"""The style of all figures: palette, canvas, headline, legend, ticks, and files on disk."""

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# The palette of Okabe and Ito, which colour-blind readers can tell apart. Neighbours differ in lightness too, for print
# in grey.
BLUE, ORANGE, GREEN, PINK, SKY, RED = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"
INK, FAINT = "#222222", "#B8B8B8"
COLOURS = {
    "blue": BLUE, "orange": ORANGE, "green": GREEN, "pink": PINK, "sky": SKY, "red": RED, "ink": INK, "faint": FAINT,
}  # fmt: skip

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
    """Run a drawing function in this style, without a change to the user's own settings."""

    @functools.wraps(draw)
    def in_style(*args: P.args, **kwargs: P.kwargs) -> T:
        import matplotlib

        with matplotlib.rc_context(dict(STYLE)):
            return draw(*args, **kwargs)

    return in_style


def canvas(rows: int, columns: int, *, width: float, height: float, share_x: bool = True) -> tuple[Any, Any]:
    """A figure and its axes. It needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, sharex=share_x, squeeze=False)


def headline(figure: Any, title: str, *, size: float = 11) -> None:
    """The title of the whole figure, at its upper left."""
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold", fontsize=size)


def shared_legend(figure: Any, axes: Any, *, columns: int, size: float | None = None) -> None:
    """One legend below all panels, which share their marks. It shows every label once."""
    marks: dict[str, Any] = {}
    for axis in axes.flat:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            marks.setdefault(label, handle)
    columns = min(columns, len(marks))
    figure.legend(marks.values(), marks.keys(), loc="outside lower center", ncols=columns, fontsize=size)


def plain_ticks(axis: Any, sides: str = "xy") -> None:
    """Plain numbers (1, 2, 5 times powers of ten) on each logarithmic axis of less than two decades.

    A still shorter axis gets more of them. Call this after everything is drawn.
    """
    import numpy as np
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    for name in sides:
        side, limits = getattr(axis, f"{name}axis"), getattr(axis, f"get_{name}lim")()
        low, high = sorted(limits)
        if side.get_scale() != "log" or high / low > 100:
            continue
        powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
        steps = (1, 2, 5) if high / low > 6 else (1, 1.5, 2, 3, 4, 5, 7)
        side.set_major_locator(FixedLocator([p * s for p in powers for s in steps if low <= p * s <= high]))
        side.set_minor_locator(NullLocator())
        side.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))


@styled
def png(figure: Any, *, dpi: float = 200) -> bytes:
    """The figure as a PNG file in memory, for a page that contains its pictures."""
    from io import BytesIO

    file = BytesIO()
    figure.savefig(file, format="png", metadata={"Software": None}, dpi=dpi)
    return file.getvalue()


@styled
def save(figure: Any, numbers: Mapping[str, Any], stem: Path, *, pdf: bool = True) -> list[Path]:
    """Write stem.png, stem.pdf and stem.json, the drawn numbers. The same numbers give the same bytes."""
    text = json.dumps(numbers, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    stem.parent.mkdir(parents=True, exist_ok=True)
    png, vector, data = (stem.with_name(stem.name + ending) for ending in (".png", ".pdf", ".json"))
    # The layout is most of the work: it is computed once for both formats.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    figure.savefig(png, metadata={"Software": None})
    data.write_text(text, encoding="utf-8")
    if not pdf:
        return [png, data]
    figure.savefig(vector, metadata={"CreationDate": None, "ModDate": None})
    return [png, vector, data]
