"""Beyond the paper: how flat every run ended, relative to the least trace there is, against its test error."""

from collections.abc import Mapping, Sequence
from typing import Any

from steppe.papers.catalogue import Figure
from steppe.papers.wen2023.groups import joined, parted

# Scenario and kind of algorithm of every figure whose least trace is known.
_KINDS: dict[str, dict[str, tuple[str, ...]]] = {
    "I": {"1-SAM": ("fig1b", "fig8b"), "weight decay": ("fig1a", "fig8a")},
    "II": {"1-SAM": ("fig4b", "fig9b", "fig11b"), "weight decay": ("fig4a", "fig9a", "fig11a")},
    "III": {"1-SAM": ("fig6a", "fig6b", "fig10b")},
}
FIGURES = tuple(id for kinds in _KINDS.values() for ids in kinds.values() for id in ids)
_COLOURS = {"I": "green", "II": "red", "III": "blue"}
_NAMES = {"I": "no bias", "II": "bias", "III": "LayerNorm"}
# An error of no test point in 10,000 is drawn at this height.
_FLOOR = 3e-5


def numbers(entries: Sequence[Any]) -> dict[str, Any]:
    runs = parted(FIGURES, entries)
    series = []
    for scenario, kinds in _KINDS.items():
        for kind, ids in kinds.items():
            chosen = [e for id in ids for e in runs[id]]
            series.append(
                {
                    "x": [e.result["trace_parts"]["gauss_newton"] / e.result["bound"] for e in chosen],
                    "y": [max(1 - e.result["final"]["test_accuracy"], _FLOOR) for e in chosen],
                    "kind": "points" if kind == "1-SAM" else "crosses",
                    "colour": _COLOURS[scenario],
                    "label": f"{scenario}: {_NAMES[scenario]}, {kind}",
                }
            )
    panel = {
        "x": "trace (Gauss-Newton part) over the least of an interpolator",
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
