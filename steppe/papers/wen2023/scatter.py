"""Beyond the paper: how flat every run ended, relative to the least trace there is, against its test error."""

from collections.abc import Mapping, Sequence
from typing import Any

from steppe.experiments._paper import Figure
from steppe.papers.wen2023.groups import joined, parted

# Label, colour, kind of point and figures: all those with a lower bound of the trace and an accuracy.
_SERIES: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("I: no bias, 1-SAM", "green", "points", ("fig1b", "fig8b")),
    ("I: no bias, weight decay", "green", "crosses", ("fig1a", "fig8a")),
    ("I: BatchNorm, 1-SAM", "orange", "points", ("fig2a", "fig10a")),
    ("II: bias, 1-SAM", "red", "points", ("fig4b", "fig9b", "fig11b")),
    ("II: bias, weight decay", "red", "crosses", ("fig4a", "fig9a", "fig11a")),
    ("III: LayerNorm, 1-SAM", "blue", "points", ("fig6a", "fig6b", "fig10b")),
)
FIGURES = tuple(id for *_, ids in _SERIES for id in ids)
# An error of no test point in 10,000 is drawn at this height.
_FLOOR = 3e-5


def numbers(entries: Sequence[Any]) -> dict[str, Any]:
    runs = parted(FIGURES, entries)
    series = []
    for label, colour, kind, ids in _SERIES:
        chosen = [e for id in ids for e in runs[id]]
        x = [e.result["trace_parts"]["gauss_newton"] / e.result["bound"] for e in chosen]
        y = [max(1 - e.result["final"]["test_accuracy"], _FLOOR) for e in chosen]
        series.append({"x": x, "y": y, "kind": kind, "colour": colour, "label": label})
    panel = {
        "x": "trace (Gauss-Newton part) over the bound for interpolators",
        "y": f"test error (none of the test points: {_FLOOR:.0e})",
        "series": series,
        "log": "xy",
        "places": [{"at": 1.0, "label": "flattest"}],
    }
    return {"title": "Flat is not enough: all runs", "panels": [panel]}


def draw(numbers: Mapping[str, Any]) -> Any:
    from steppe.figures import panels

    return panels(numbers)


FIGURE = Figure(
    id="scatter",
    title="flatness against test error of all runs",
    specs=joined(FIGURES),
    numbers=numbers,
    draw=draw,
    seconds={"smoke": 1, "paper": 1},
)
