"""The figures of wen2023 that show a training run, 1 to 11: the numbers behind them and how they are drawn."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from steppe.experiments._paper import Figure
from steppe.papers.wen2023.table2 import specs

_TITLES = {
    "fig1a": "no bias, GD with weight decay",
    "fig1b": "no bias, 1-SAM",
    "fig2a": "simplified BatchNorm, 1-SAM",
    "fig2a-printed": "simplified BatchNorm, 1-SAM with ρ = 1 at last",
    "fig4a": "bias, GD with weight decay",
    "fig4b": "bias, 1-SAM",
    "fig5a": "softplus, SGD with weight decay",
    "fig5b": "softplus, 1-SAM",
    "fig6a": "simplified LayerNorm, 1-SAM",
    "fig6b": "simplified LayerNorm, norm held, 1-SAM",
    "fig7a": "uniform ball, no bias, 1-SAM",
    "fig7b": "uniform ball, bias, 1-SAM",
    "fig8a": "logistic, no bias, SGD with weight decay",
    "fig8b": "logistic, no bias, 1-SAM",
    "fig9a": "logistic, bias, SGD with weight decay",
    "fig9b": "logistic, bias, 1-SAM",
    "fig10a": "logistic, simplified BatchNorm, 1-SAM",
    "fig10b": "logistic, simplified LayerNorm, 1-SAM",
    "fig11a": "3 layers, bias, SGD with weight decay",
    "fig11b": "3 layers, bias, 1-SAM",
}
# Measured on two cores, all seeds: smoke, paper.
_SECONDS = {
    "fig1a": (4, 60), "fig1b": (4, 90), "fig2a": (10, 3700), "fig2a-printed": (3, 90),
    "fig4a": (4, 70), "fig4b": (10, 560),
    "fig5a": (4, 130), "fig5b": (6, 310), "fig6a": (4, 160), "fig6b": (4, 30), "fig7a": (3, 65), "fig7b": (4, 55),
    "fig8a": (4, 120), "fig8b": (4, 105), "fig9a": (4, 90), "fig9b": (5, 115), "fig10a": (6, 680),
    "fig10b": (4, 140), "fig11a": (6, 1150), "fig11b": (8, 1300),
}  # fmt: skip


def numbers(title: str, entries: Sequence[Any]) -> dict[str, Any]:
    """Everything the figure draws, as plain JSON."""
    first = entries[0].spec
    ends = [sum(row["epochs"] for row in first["stages"][: k + 1]) for k in range(len(first["stages"]) - 1)]
    # The labels of the ball are numbers, not classes.
    shown = "test_loss" if first["data"] == "ball" else "test_accuracy"
    columns = ("epoch", "train_loss", shown, "trace")
    return {
        "title": title,
        "bound": median_bound(entries),
        "stages": ends,
        "runs": [
            {"seed": e.spec["seed"], "id": e.id} | {name: e.curves[name].tolist() for name in columns} for e in entries
        ],
    }


def median_bound(entries: Sequence[Any]) -> float | None:
    """The least trace at interpolation, in the median over the seeds' training sets."""
    bounds = [e.result["bound"] for e in entries if e.result["bound"] is not None]
    # That of a net without bias is far from attained (its own theory bounds the trace from both sides, lemma A.11).
    return median(bounds) if bounds and entries[0].spec["network"] != "no-bias" else None


def draw(numbers: Mapping[str, Any]) -> Any:
    from steppe.figures import training_curves

    return training_curves(numbers)


def panel(id: str) -> Figure:
    smoke, paper = _SECONDS[id]
    title = f"Fig. {id.removeprefix('fig')} · {_TITLES[id]}"
    return Figure(
        id=id,
        title=_TITLES[id],
        specs=specs(id),
        numbers=lambda entries: numbers(title, entries),
        draw=draw,
        seconds={"smoke": smoke, "paper": paper},
    )


PANELS = tuple(panel(id) for id in _TITLES)
