"""The figures of mulayoff2021: the numbers behind them and how they are drawn."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from steppe.experiments._paper import Figure
from steppe.papers.mulayoff2021.runs import function, merged
from steppe.papers.mulayoff2021.specs import FACTORS, FIG1, FIG3, INIT

SHOWN = 9  # functions in the galleries of the supplement


def first_figure(entries: Sequence[Any]) -> dict[str, Any]:
    """The first seed: losses and interpolants of the constant and of the tripled step size."""
    pair = entries[:2]
    arrays = [e.params for e in pair]
    labels = [f"η = {pair[0].spec['low']:g}", f"η × {pair[1].spec['factor']:g} when the loss is below 0.1"]
    runs = []
    for label, a, e in zip(labels, arrays, pair, strict=True):
        seen = [k for k, value in enumerate(a["losses"][:, 0]) if math.isfinite(value)]
        steps, losses = a["moments"][seen].tolist(), a["losses"][seen, 0].tolist()
        f = function(a, 0)
        at = _corners(f, a["x"])
        runs.append(
            {"label": label, "step": [*steps, int(e.curves["step"][0])], "loss": [*losses, float(e.curves["loss"][0])]}
            | {"at": at, "value": f(at).tolist()}
        )
    return {
        "title": "Fig. 1 · one start, two step sizes",
        "x": arrays[0]["x"].tolist(),
        "y": arrays[0]["y"].tolist(),
        "runs": runs,
    }


def sharpness(entries: Sequence[Any]) -> dict[str, Any]:
    return {"title": "", "panels": [_panel("Fig. 3 · sharpness and step size", entries)]}


def by_initialisation(entries: Sequence[Any]) -> dict[str, Any]:
    panels = []
    for factor in FACTORS:
        of_factor = [e for e in entries if e.spec["scale"] == factor]
        panels.append(_panel(f"initialisation × {factor:g}", of_factor))
    return {"title": "Supplement, Fig. 3 · sharpness and step size by initialisation", "panels": panels}


def smoothness(entries: Sequence[Any]) -> dict[str, Any]:
    runs = merged(entries)
    columns = {name: runs[name][runs["counted"]].tolist() for name in ("lr", "weighted", "centre")}
    return {"title": "Smoothness and step size"} | columns


def gallery(entries: Sequence[Any]) -> dict[str, Any]:
    """Interpolants for several step sizes."""
    arrays, chosen = _chosen(entries)
    functions = []
    for lr, e, k in chosen:
        f = function(e.params, k)
        at = _corners(f, arrays["x"])
        functions.append({"label": f"η = {lr:.3g}", "at": at, "value": f(at).tolist()})
    title = "Supplement, Fig. 1 · interpolants by step size"
    return {"title": title, "x": arrays["x"].tolist(), "y": arrays["y"].tolist(), "functions": functions}


def bends(entries: Sequence[Any]) -> dict[str, Any]:
    """f″ of the same functions, and the weight g."""
    import numpy as np

    from steppe.papers.mulayoff2021.theory.function_space import weight

    arrays, chosen = _chosen(entries)
    x = arrays["x"]
    grid = np.linspace(x.min(), x.max(), 201)
    functions = []
    for lr, e, k in chosen:
        knots, jumps = function(e.params, k).second_derivative(float(x.min()), float(x.max()))
        functions.append({"label": f"η = {lr:.3g}", "knots": knots.tolist(), "jumps": jumps.tolist()})
    title = "Supplement, Fig. 2 · f″ by step size (grey: the weight g)"
    return {
        "title": title, "x": x.tolist(), "grid": grid.tolist(), "weight": weight(x, grid).tolist(),
        "functions": functions,
    }  # fmt: skip


def _panel(title: str, entries: Sequence[Any]) -> dict[str, Any]:
    runs = merged(entries)
    counted = runs["counted"]
    columns = {name: runs[name][counted].tolist() for name in ("lr", "sharpness", "flattest")}
    left_out = {"failed": ~runs["reached"], "excluded": runs["warming"]}
    rates = {name: runs["lr"][which].tolist() for name, which in left_out.items()}
    return {"title": title, **columns, "bound": runs["function"][counted].tolist(), **rates}


def _chosen(entries: Sequence[Any]) -> tuple[Mapping[str, Any], list[tuple[float, Any, int]]]:
    """SHOWN runs that count, evenly spread over the logarithm of the step size."""
    import numpy as np

    found = [
        (float(lr), e, k)
        for e in entries
        for k, (lr, counted) in enumerate(zip(e.curves["lr"], e.curves["counted"], strict=True))
        if counted
    ]
    found.sort(key=lambda triple: triple[0])
    places = np.unique(np.linspace(0, len(found) - 1, min(SHOWN, len(found))).round().astype(int))
    return entries[0].params, [found[k] for k in places]


def _corners(f: Any, x: Any) -> list[float]:
    """Where a straight line is drawn from to: the knots near the data, and a little beyond the data."""
    import numpy as np

    margin = 0.1 * np.ptp(x)
    ends = float(x.min() - margin), float(x.max() + margin)
    return [ends[0], *f.second_derivative(*ends)[0].tolist(), ends[1]]


def _drawn(name: str) -> Callable[[Mapping[str, Any]], Any]:
    def draw(numbers: Mapping[str, Any]) -> Any:
        from steppe import figures

        return getattr(figures, name)(numbers)

    return draw


# Seconds: measured with one process on a busy machine; the four figures on FIG3 share their runs.
FIGURES = (
    Figure("fig1", "one start, η = 1e-4 constant or tripled at loss 0.1", FIG1, first_figure, _drawn("two_trainings"),
           {"smoke": 4, "paper": 10}),
    Figure("fig3", "sharpness against step size", FIG3, sharpness, _drawn("sharpness_curves"),
           {"smoke": 6, "paper": 120}),
    Figure("smoothness", "smoothness against step size, with the bound 1/η − ½", FIG3, smoothness,
           _drawn("smoothness"), {"smoke": 6, "paper": 120}),
    Figure("s-fig1", "interpolants for several step sizes", FIG3, gallery, _drawn("interpolants"),
           {"smoke": 6, "paper": 120}),
    Figure("s-fig2", "second derivatives for several step sizes", FIG3, bends, _drawn("second_derivatives"),
           {"smoke": 6, "paper": 120}),
    Figure("s-fig3", "sharpness against step size for six initialisations", INIT, by_initialisation,
           _drawn("sharpness_curves"), {"smoke": 10, "paper": 1000}),
)  # fmt: skip
