"""One style for every figure: colours that colour-blind readers can tell apart, readable in greyscale."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

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
