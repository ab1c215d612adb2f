"""What a figure plots, as panels for the browser. Every drawing of `steppe.figures` has a view here or is a picture.

A panel is that of `steppe.figures.panels`, a mapping with x and y (labels) and series. Its series may also be bands
(low and high instead of y), and its places and levels may have colours.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Panel = dict[str, Any]
_TEST = {"test_accuracy": "test accuracy", "test_loss": "test loss"}
# Fields of colour over a plane or a triangle: shown as the picture itself.
PICTURES = frozenset({"planes", "diagonal", "simplex", "memorising"})


def view(drawing: str, numbers: Mapping[str, Any]) -> list[Panel] | None:
    """The panels of a figure that the function `drawing` of `steppe.figures` draws; None if only its picture shows it.

    >>> [panel["y"] for panel in view("panels", {"panels": [{"x": "step", "y": "loss", "series": []}]})]
    ['loss']
    """
    return None if drawing in PICTURES | {"table"} else _VIEWS[drawing](numbers)


def _line(x: Any, y: Any, label: str, colour: str, kind: str = "line") -> dict[str, Any]:
    return {"x": list(x), "y": list(y), "label": label, "colour": colour, "kind": kind}


def _panels(numbers: Mapping[str, Any]) -> list[Panel]:
    return list(numbers["panels"])


def _rates(numbers: Mapping[str, Any]) -> list[Panel]:
    return [panel for row in numbers["grid"] for panel in row if panel]


def _training(numbers: Mapping[str, Any]) -> list[Panel]:
    """Loss, test accuracy and trace: the median over the seeds, and each seed or the band of all of them."""
    runs = numbers["runs"]
    test = next(name for name in _TEST if name in runs[0])
    places = [{"at": stage, "label": f"stage {k}"} for k, stage in enumerate(numbers["stages"], start=2)]
    shared: Panel = {"x": "epochs (the start is drawn at ½)", "places": places}
    panels: list[Panel] = []
    for name, label, colour in (("train_loss", "train loss", "blue"), (test, _TEST[test], "green")):
        log = "x" if name == "test_accuracy" else "xy"
        panels.append(shared | {"y": label, "log": log, "series": _seeds(runs, name, colour)})
    low = min(value for run in runs for value in run["trace"])
    trace: Panel = shared | {"y": "tr ∇²L", "log": "xy" if low > 0 else "x", "series": _seeds(runs, "trace", "orange")}
    if low <= 0:
        trace["symlog"] = True
    if numbers.get("bound") is not None:
        trace["levels"] = [{"at": numbers["bound"], "label": f"lower bound {numbers['bound']:.2f}", "colour": "ink"}]
    return [*panels, trace]


def _seeds(runs: Sequence[Mapping[str, Any]], name: str, colour: str) -> list[dict[str, Any]]:
    common = sorted(set.intersection(*(set(run["epoch"]) for run in runs)))
    values = np.array([[dict(zip(r["epoch"], r[name], strict=True))[e] for e in common] for r in runs], dtype=float)
    epochs = [max(e, 0.5) for e in common]
    if len(runs) == 1:
        return [_line(epochs, values[0], "one seed", colour)]
    band = {"x": epochs, "low": values.min(0), "high": values.max(0), "label": f"all {len(runs)} seeds"}
    return [band | {"kind": "band", "colour": colour}, _line(epochs, np.median(values, 0), "median", colour)]


def _flatness_loss(numbers: Mapping[str, Any]) -> list[Panel]:
    found = []
    for one in (panel for row in numbers["rows"] for panel in row):
        x, y = one["flatness"]["median"], one["loss"]["median"]
        series = _line(x, y, "median over seeds", "blue", "joined") | {"note": [f"ν = {nu:.3g}" for nu in one["nu"]]}
        level = {"at": one["power"], "label": "predicting 0", "colour": "ink"}
        axes = {"x": "flatness tr ∇²L of the flattest interpolator", "y": "population loss", "log": "xy"}
        found.append(axes | {"title": one["title"], "series": [series], "levels": [level]})
    return found


def _rescaling(numbers: Mapping[str, Any]) -> list[Panel]:
    found = []
    for one in numbers["panels"]:
        series = [
            _line(one["factors"], one[measure][kind], f"{measure}, {word}", colour, "points")
            for measure, colours in (("sharpness", ("blue", "red")), ("trace", ("sky", "orange")))
            for (kind, word), colour in zip((("plain", "as measured"), ("invariant", "least")), colours, strict=True)
        ]
        axes = {"x": "largest factor of a neuron", "y": "trace and sharpness of ∇²L", "log": "xy"}
        found.append(axes | {"title": one["title"], "series": series})
    return found


def _spectrum(numbers: Mapping[str, Any]) -> list[Panel]:
    grid, density, error = (np.asarray(numbers[name]) for name in ("grid", "density", "stderr"))
    band = {"x": grid, "low": density - 2 * error, "high": density + 2 * error, "label": "two standard errors"}
    places = [{"at": numbers["sharpness"], "label": "λ_max"}, {"at": 2 / numbers["lr"], "label": "2/η"}]
    series = [band | {"kind": "band", "colour": "blue"}, _line(grid, density, "density", "blue")]
    return [{"x": "eigenvalue", "y": "spectral density", "series": series, "places": places}]


def _sharpness_curves(numbers: Mapping[str, Any]) -> list[Panel]:
    found = []
    for one in numbers["panels"]:
        lr = np.asarray(one["lr"], dtype=float)
        series = [
            _line(lr, one["sharpness"], "sharpness of the minimum", "blue", "points"),
            _line(lr, one["flattest"], "flattest rescaling", "orange", "points"),
            _line(lr, one["bound"], "lower bound 1 + 2∫|f″|g", "green", "points"),
            _line(np.sort(lr), 2 / np.sort(lr), "2/η", "ink", "dashed"),
        ]
        found.append({"x": "step size η", "y": "sharpness", "log": "xy", "title": one["title"], "series": series})
    return found


def _smoothness(numbers: Mapping[str, Any]) -> list[Panel]:
    lr = np.asarray(numbers["lr"], dtype=float)
    bound = _line(lr, 1 / lr - 0.5, "bound 1/η − ½", "ink", "dashed")
    weighted = _line(lr, numbers["weighted"], "∫|f″| g", "blue", "points")
    centre = _line(lr, numbers["centre"], "∫|f″|, middle half of the data", "orange", "points")
    axes = {"x": "step size η", "log": "xy"}
    return [axes | {"y": "∫|f″| g", "series": [bound, weighted]}, axes | {"y": "∫|f″|", "series": [centre]}]


def _interpolants(numbers: Mapping[str, Any]) -> list[Panel]:
    data = _line(numbers["x"], numbers["y"], "data", "ink", "points")
    functions = numbers["functions"]
    return [
        {"x": "x", "y": "f(x)", "title": f["label"], "series": [_line(f["at"], f["value"], "f", "blue"), data]}
        for f in functions
    ]


def _second_derivatives(numbers: Mapping[str, Any]) -> list[Panel]:
    return [
        {
            "x": "x",
            "y": "jumps of f′",
            "title": f["label"],
            "series": [_line(f["knots"], f["jumps"], "f″", "orange", "points")],
        }
        for f in numbers["functions"]
    ]


def _two_trainings(numbers: Mapping[str, Any]) -> list[Panel]:
    runs = list(zip(numbers["runs"], ("ink", "green"), strict=True))
    losses = [_line(r["step"], r["loss"], r["label"], colour) for r, colour in runs]
    functions = [_line(r["at"], r["value"], r["label"], colour) for r, colour in runs]
    data = _line(numbers["x"], numbers["y"], "data", "blue", "points")
    return [
        {"x": "steps", "y": "loss", "log": "xy", "series": losses},
        {"x": "x", "y": "f(x)", "series": [*functions, data]},
    ]


def _bifurcation(numbers: Mapping[str, Any]) -> list[Panel]:
    a = np.asarray(numbers["a"], dtype=float)
    orbits = numbers["orbits"]
    x, y = np.repeat(a, [len(o) for o in orbits]), np.concatenate([np.asarray(o, dtype=float) for o in orbits])
    kept = slice(None, None, max(1, len(x) // 3000))
    curves = [_line(c["a"], c["z"], c["label"], "orange") for c in numbers["curves"]]
    places = [{"at": p["at"], "label": p["label"]} for p in numbers["places"]]
    top = {"y": "w √(x/y) after many steps", "series": [_line(x[kept], y[kept], "orbits", "blue", "points"), *curves]}
    bottom = {"y": "Lyapunov exponent", "series": [_line(a, numbers["lyapunov"], "exponent", "ink")]}
    return [part | {"x": "a = η/η_c", "places": places} for part in (top, bottom)]


def _neurons(numbers: Mapping[str, Any]) -> list[Panel]:
    run = numbers["runs"][0]
    weights, rows, columns = (np.asarray(run[name]) for name in ("neurons", "rows", "columns"))
    plane = [
        _line(weights[:, 0], weights[:, 1], "neurons", "blue", "points"),
        _line(rows[:, 0], rows[:, 1], "the four longest", "orange", "circles"),
    ]
    norms = [_line(np.arange(1, len(columns) + 1), columns, "norm", "blue", "points")]
    return [
        {"x": "W₁[1]", "y": "W₁[2]", "title": f"neurons, seed {run['seed']}", "series": plane},
        {"x": "input", "y": "norm of the column of W₁", "title": "columns", "series": norms},
    ]


def _correlations(numbers: Mapping[str, Any]) -> list[Panel]:
    """A measure at each number of the axis, named where the mouse is."""
    found = []
    for one in numbers["panels"]:
        series = []
        for mark, colour in zip(one["marks"], ("blue", "orange", "green", "pink", "sky", "red"), strict=False):
            value, low, high = np.asarray(mark["values"], dtype=float).T
            shown = _line(np.arange(1, len(value) + 1), value, mark["label"], colour, "points")
            series.append(shown | {"low": low, "high": high, "note": one["rows"]})
        axes = {"x": "measure", "y": numbers["x"], "levels": [{"at": 0, "label": "", "colour": "ink"}]}
        found.append(axes | {"title": one["title"], "series": series})
    return found


_VIEWS: Mapping[str, Callable[[Mapping[str, Any]], list[Panel]]] = {
    "panels": _panels,
    "rates": _rates,
    "training_curves": _training,
    "flatness_loss": _flatness_loss,
    "rescaling": _rescaling,
    "spectrum": _spectrum,
    "sharpness_curves": _sharpness_curves,
    "smoothness": _smoothness,
    "interpolants": _interpolants,
    "second_derivatives": _second_derivatives,
    "two_trainings": _two_trainings,
    "bifurcation": _bifurcation,
    "neurons": _neurons,
    "correlations": _correlations,
}
