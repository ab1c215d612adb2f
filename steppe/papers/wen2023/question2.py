"""Question 2 of the paper: both II (bias) and III (LayerNorm) have flattest minimisers that memorise, and 1-SAM finds
them in II only. Which property besides sharpness tells where it goes?"""

from collections.abc import Mapping, Sequence
from typing import Any

from steppe.experiments._paper import Figure
from steppe.papers.wen2023.groups import joined, parted

FIGURES = ("fig1b", "fig4b", "fig6a")
_NAMES = {"fig1b": "I: no bias", "fig4b": "II: bias", "fig6a": "III: LayerNorm"}
_COLOURS = {"fig1b": "green", "fig4b": "red", "fig6a": "blue"}
_PANELS = {
    "test_accuracy": ("test accuracy", ""),
    "sharing": ("share of the examples a neuron fires on", ""),
    "feature_rank": ("rank of the features", "y"),
    "active_neurons": ("active neurons", "y"),
    "path_norm": ("path norm", "y"),
    "normalised_margin": ("normalised margin", ""),
}


def numbers(entries: Sequence[Any]) -> dict[str, Any]:
    runs = parted(FIGURES, entries)
    panels: list[dict[str, Any]] = []
    for name, (label, log) in _PANELS.items():
        series = []
        for id in FIGURES:
            for k, e in enumerate(runs[id]):
                epochs, column = e.curves["epoch"].clip(min=0.5), e.curves[name]
                label_once = {"label": _NAMES[id]} if k == 0 and not panels else {}
                series.append(
                    {"x": epochs.tolist(), "y": column.tolist(), "kind": "thin", "colour": _COLOURS[id]} | label_once
                )
        panels.append({"x": "epochs", "y": label, "series": series, "log": "x" + log})
    return {"title": "Question 2: what 1-SAM's minima have besides flatness", "panels": panels}


def draw(numbers: Mapping[str, Any]) -> Any:
    from steppe.figures import panels

    return panels(numbers)


FIGURE = Figure(
    id="question2",
    title="properties of the minima along 1-SAM",
    specs=joined(FIGURES),
    numbers=numbers,
    draw=draw,
    seconds={"smoke": 1, "paper": 1},
)
