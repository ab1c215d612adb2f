"""The figures of wen2023 that show a training run: the numbers behind them and how they are drawn."""

from collections.abc import Mapping, Sequence
from typing import Any

from steppe.papers.catalogue import Figure
from steppe.papers.wen2023.table2 import specs

_TITLES = {
    "fig1a": "Fig. 1a · no bias, GD with weight decay",
    "fig1b": "Fig. 1b · no bias, 1-SAM",
    "fig4a": "Fig. 4a · bias, GD with weight decay",
    "fig4b": "Fig. 4b · bias, 1-SAM",
}
# Measured on two cores, all seeds: smoke, paper.
_SECONDS = {"fig1a": (4, 60), "fig1b": (4, 60), "fig4a": (4, 60), "fig4b": (10, 380)}


def numbers(figure: str, entries: Sequence[Any]) -> dict[str, Any]:
    """Everything the figure draws, as plain JSON."""
    first = entries[0].spec
    ends = [sum(row["epochs"] for row in first["stages"][: k + 1]) for k in range(len(first["stages"]) - 1)]
    columns = ("epoch", "train_loss", "test_accuracy", "trace")
    return {
        "title": _TITLES[figure],
        "bound": lower_bound(entries) if first["network"] == "bias" else None,
        "stages": ends,
        "runs": [
            {"seed": e.spec["seed"], "id": e.id} | {name: e.curves[name].tolist() for name in columns} for e in entries
        ],
    }


def lower_bound(entries: Sequence[Any]) -> float:
    """4√(d + 1), the least trace of an interpolating 2-MLP-Bias on P_xor (Eq. 3)."""
    from steppe.constructions import bounds
    from steppe.problems.data import xor

    data = xor(entries[0].spec["d"], 1)
    return bounds.two_layer_bias(data.x, data.y)


def draw(numbers: Mapping[str, Any]) -> Any:
    from steppe.figures import training_curves

    return training_curves(numbers)


def figure(id: str) -> Figure:
    smoke, paper = _SECONDS[id]
    return Figure(
        id=id,
        title=_TITLES[id].split(" · ")[1],
        specs=specs(id),
        numbers=lambda entries: numbers(id, entries),
        draw=draw,
        seconds={"smoke": smoke, "paper": paper},
    )


FIGURES = tuple(figure(id) for id in _TITLES)
