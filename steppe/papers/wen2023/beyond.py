"""Beyond the paper's figures: sample complexity, a penalised bias, and the next checks its reviewers ask for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from steppe.experiments._paper import Figure, Scale
from steppe.papers.wen2023 import panels
from steppe.papers.wen2023.training import Row, Training

Specs = dict[Scale, tuple[Training, ...]]

_SAM = Row(0.01, 0.05, 1, 0.0, 1)


def _draw(numbers: Mapping[str, Any]) -> Any:
    from steppe.figures import panels as drawn

    return drawn(numbers)


def _sizes(sizes: Sequence[int], steps: int, seeds: int, **rest: Any) -> tuple[Training, ...]:
    """1-SAM on n examples for every n, the same number of steps each; no bias, then bias."""
    return tuple(
        Training(network, (replace(_SAM, epochs=steps // n),), n=n, seed=seed, per_decade=5, **rest)
        for network in ("no-bias", "bias")
        for n in sizes
        for seed in range(seeds)
    )


SAMPLES: Specs = {
    "smoke": _sizes((40, 160), 200_000, 2, width=200, test=4_000),
    "paper": _sizes((25, 35, 50, 70, 100, 140, 200, 280, 400), 2_000_000, 5),
}


def by_size(entries: Sequence[Any], network: str, name: str) -> dict[int, list[float]]:
    """The last values of a curve by training-set size."""
    found: dict[int, list[float]] = {}
    for e in entries:
        if e.spec["network"] == network:
            found.setdefault(e.spec["n"], []).append(e.result["final"][name])
    return found


def _sample_numbers(entries: Sequence[Any]) -> dict[str, Any]:
    series, sizes = [], sorted(by_size(entries, "no-bias", "test_loss"))
    d = entries[0].spec["d"]
    for network, colour in (("no-bias", "green"), ("bias", "red")):
        found = by_size(entries, network, "test_loss")
        points = [(n, v) for n, values in found.items() for v in values]
        series.append({"x": [n for n, _ in points], "y": [v for _, v in points], "kind": "points", "colour": colour})
        medians = [median(found[n]) for n in sizes]
        series.append({"x": sizes, "y": medians, "kind": "line", "colour": colour, "label": f"{network}, median"})
    line = {"x": sizes, "y": [d / n for n in sizes], "kind": "dashed", "colour": "ink", "label": "d/n"}
    panel = {"x": "training examples n", "y": "test loss of 1-SAM", "series": [*series, line], "log": "xy"}
    return {"title": "Sample complexity on P_xor against d/n (theorem 3.1)", "panels": [panel]}


SAMPLE_COMPLEXITY = Figure(
    id="sample-complexity",
    title="test loss of 1-SAM against n, with the rate d/n",
    specs=SAMPLES,
    numbers=_sample_numbers,
    draw=_draw,
    seconds={"smoke": 6, "paper": 300},
)


def _penalties(penalties: Sequence[float], epochs: int, seeds: int, **rest: Any) -> tuple[Training, ...]:
    return tuple(
        Training("bias", (replace(_SAM, epochs=epochs, bias_decay=penalty),), seed=seed, **rest)
        for penalty in penalties
        for seed in range(seeds)
    )


# Decay of b₁ alone; 0 is figure 4b's first stage.
PENALTIES: Specs = {
    "smoke": _penalties((0.0, 0.1), 1_000, 2, width=100, test=4_000, per_decade=10),
    "paper": _penalties((0.0, 0.01, 0.1, 1.0), 5_000, 3, width=200),
}


def _penalty_numbers(entries: Sequence[Any]) -> dict[str, Any]:
    colours = ("red", "orange", "green", "blue", "ink")
    penalties = sorted({e.spec["stages"][0]["bias_decay"] for e in entries})
    shown = []
    for name, label, log in (("test_accuracy", "test accuracy", "x"), ("trace", "tr ∇²L", "xy")):
        series = []
        for penalty, colour in zip(penalties, colours, strict=False):
            for k, e in enumerate(e for e in entries if e.spec["stages"][0]["bias_decay"] == penalty):
                epochs = e.curves["epoch"].clip(min=0.5).tolist()
                once = {"label": f"decay {penalty:g}"} if k == 0 else {}
                series.append({"x": epochs, "y": e.curves[name].tolist(), "kind": "thin", "colour": colour} | once)
        shown.append({"x": "epochs", "y": label, "series": series, "log": log})
    return {"title": "Scenario II when the bias is penalised (1-SAM)", "panels": shown}


BIAS_PENALTY = Figure(
    id="bias-penalty",
    title="1-SAM with weight decay of the bias alone",
    specs=PENALTIES,
    numbers=_penalty_numbers,
    draw=_draw,
    seconds={"smoke": 15, "paper": 400},
)

_NEXT: dict[str, tuple[str, Training]] = {
    "next-depth4": ("4 layers, bias, 1-SAM", Training("bias", (replace(_SAM, epochs=5_000),), depth=4, width=100)),
    "next-batch-norm": (
        "standard BatchNorm, 1-SAM",
        Training("batch-norm", (Row(0.005, 0.1, 1, 0.0, 2_000),), width=100),
    ),
    "next-layer-norm": (
        "standard LayerNorm, 1-SAM",
        Training("layer-norm", (Row(0.005, 0.1, 1, 0.0, 5_000),), width=100),
    ),
    # An odd function: a ReLU net without bias has a linear odd part and cannot fit it.
    "next-parity": (
        "3-parity, bias, 1-SAM",
        Training("bias", (replace(_SAM, epochs=20_000),), data="parity", n=1_000, d=20),
    ),
    "next-mixture": (
        "Gaussian mixture, bias, 1-SAM",
        Training("bias", (replace(_SAM, epochs=20_000),), data="mixture"),
    ),
}
_NEXT_SMOKE = {
    "next-depth4": {"epochs": 150}, "next-batch-norm": {"epochs": 60}, "next-layer-norm": {"epochs": 100},
    "next-parity": {"epochs": 300}, "next-mixture": {"epochs": 2_000},
}  # fmt: skip


def _next_specs(id: str) -> Specs:
    _, paper = _NEXT[id]
    smoke = replace(
        paper, stages=tuple(replace(row, **_NEXT_SMOKE[id]) for row in paper.stages), width=min(paper.width, 100),
        test=4_000, per_decade=10,
    )  # fmt: skip
    return {"smoke": (smoke,), "paper": tuple(replace(paper, seed=s) for s in range(3))}


def _next_numbers(title: str) -> Callable[[Sequence[Any]], dict[str, Any]]:
    return lambda entries: panels.numbers(f"Next check · {title}", entries)


NEXT_CHECKS = tuple(
    Figure(
        id=id,
        title=title,
        specs=_next_specs(id),
        numbers=_next_numbers(title),
        draw=panels.draw,
        seconds={"smoke": 8, "paper": 200},
    )
    for id, (title, _) in _NEXT.items()
)
