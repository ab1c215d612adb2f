"""A figure for each scaling law: Theorems 1, 2, 3, Lemmas 2 and 5, Proposition 2, and what lies beyond."""

from collections.abc import Sequence
from typing import Any

from steppe.experiments._paper import Figure
from steppe.papers.multi_index.reading import NAMES, Exponent, exponent, groups
from steppe.papers.multi_index.specs import ALTERNATING, APPROXIMATE, DIMENSION, FIG2, GROWN, RATE, SAMPLE

_DEGREES = {"relu": 1, "leaky": 1, "quadratic": 2}


def _series(size: Any, values: Any, colour: str, label: str) -> list[dict[str, Any]]:
    """Draws as points, and the fitted law as a line with its exponent in the label."""
    import numpy as np

    law: Exponent = exponent(size, values)
    ends = np.unique(size)
    level = np.exp(np.mean(np.log(values)) - law.value * np.mean(np.log(size)))
    return [
        {"x": list(map(float, size)), "y": list(map(float, values)), "kind": "points", "colour": colour},
        {"x": ends.tolist(), "y": (level * ends**law.value).tolist(), "kind": "dashed", "colour": colour,
         "label": f"{label}: {law.value:.2f}"},
    ]  # fmt: skip


def _found(entry: Any) -> dict[str, Any]:
    curves = entry.curves
    return {name: column[curves["exists"] > 0] for name, column in curves.items()}


def flatness_panels(title: str, size: str, label: str) -> Any:
    def numbers(entries: Sequence[Any]) -> dict[str, Any]:
        panels = []
        ratio: list[dict[str, Any]] = []
        for entry, colour in zip(entries, ("blue", "orange"), strict=True):
            c = _found(entry)
            activation = entry.spec["activation"]
            series = (
                _series(c[size], c["bad"], "red", "bad interpolators")
                + _series(c[size], c["teacher"], "green", "Theorem 4")
                + _series(c[size], c["pointwise"], "blue", "lower bound")
            )
            panels.append({"x": label, "y": "flatness", "log": "xy", "title": NAMES[activation], "series": series})
            ratio += _series(c[size], c["bad"] / c["teacher"], colour, NAMES[activation])
        panels.append({"x": label, "y": "bad / Theorem 4", "log": "xy", "title": "ratio", "series": ratio})
        return {"title": title, "panels": panels}

    return numbers


def singular_values(entries: Sequence[Any]) -> dict[str, Any]:
    panels = []
    for entry in entries:
        c = entry.curves
        series = [
            s
            for name, colour, label in (
                ("singular_1", "red", "largest"), ("singular_2", "orange", "second"),
                ("singular_n", "blue", "smallest"),
            )
            for s in _series(c["n"], c[name], colour, label)
        ]  # fmt: skip
        title = f"{NAMES[entry.spec['activation']]}: √(nm) ∝ n, √m ∝ n^½"
        panels.append({"x": "n = 2d = m/4", "y": "singular values of Φ", "log": "xy", "title": title, "series": series})
    return {"title": "Lemma 2 · one singular value of the activations is large", "panels": panels}


def tightness(entries: Sequence[Any]) -> dict[str, Any]:
    import numpy as np

    series: list[dict[str, Any]] = []
    kinds = {0.0: "line", 0.1: "dotted"}
    colours = {"relu": "blue", "leaky": "orange", "quadratic": "green"}
    for group in groups(entries):
        ratio = group.median("lemma5") / group.median("flatness")
        seen = np.isfinite(ratio)
        noise = f", noise {group.spec['noise']:g}" if group.spec["noise"] else ""
        series.append({"x": group.columns["nu"][0][seen].tolist(), "y": ratio[seen].tolist(),
                       "kind": kinds[group.spec["noise"]], "colour": colours[group.spec["activation"]],
                       "label": NAMES[group.spec["activation"]] + noise})  # fmt: skip
    panel = {"x": "correlation ν", "y": "bound / flattest", "log": "x", "series": series, "limits": {"y": [0, 1.05]}}
    return {"title": "Lemma 5 · the bound from the least norm", "panels": [panel]}


def rate(entries: Sequence[Any]) -> dict[str, Any]:
    panels, largest = [], []
    for entry, colour in zip(entries, ("blue", "orange"), strict=True):
        c, name = entry.curves, NAMES[entry.spec["activation"]]
        series = (
            _series(c["n"], c["spoiled_loss"], "red", "worst found at twice the trace")
            + _series(c["n"], c["loss"], "green", "flattest")
            + _series(c["n"], c["patched_loss"], "blue", "Lemma 13")
        )
        panels.append({"x": "n = 2d = m/4", "y": "population loss", "log": "xy", "title": name, "series": series})
        largest += _series(c["m"], c["m"] * c["largest"], colour, f"{name}, flattest")
        largest += _series(c["m"], c["m"] * c["alone_largest"], "red" if colour == "blue" else "pink", f"{name}, one u")
    panels.append({"x": "m", "y": "m ‖a‖_∞", "log": "xy", "title": "Proposition 2: balanced?", "series": largest})
    return {"title": "Theorem 3 · flattest interpolators generalise, label noise of variance 0.1/n", "panels": panels}


def approximate(entries: Sequence[Any]) -> dict[str, Any]:
    import numpy as np

    panels = []
    for name, label in (("flatness", "flatness / that at τ = 0"), ("loss", "population loss / that at τ = 0")):
        series = []
        for entry, colour in zip(entries, ("blue", "orange"), strict=True):
            shares = entry.spec["shares"]
            values = entry.curves[name].reshape(-1, len(shares))
            ratios = values / values[:, :1]
            middle = np.median(ratios, axis=0)
            error = [(middle - np.quantile(ratios, 0.1, axis=0)).tolist(),
                     (np.quantile(ratios, 0.9, axis=0) - middle).tolist()]  # fmt: skip
            series.append({"x": list(shares), "y": middle.tolist(), "error": error, "kind": "points",
                           "colour": colour, "label": NAMES[entry.spec["activation"]]})  # fmt: skip
        panels.append({"x": "τ / (noise √n)", "y": label, "log": "y", "series": series})
    return {"title": "Beyond · approximate interpolation, ‖Φa − y‖ ≤ τ, noise 0.5", "panels": panels}


def alternating(entries: Sequence[Any]) -> dict[str, Any]:
    colours = {"relu": "blue", "leaky": "orange", "quadratic": "green"}
    kinds = {(False, True): "line", (False, False): "dotted", (True, True): "dashed"}
    styles = {"line": "neither noise nor bias", "dotted": "noise 0.1", "dashed": "inner biases"}
    panels = []
    for name, label in (
        ("flatness", "flatness / Theorem 4"), ("loss", "population loss"), ("correlation", "‖Uw‖ of what counts"),
    ):  # fmt: skip
        series: list[dict[str, Any]] = []
        for entry in entries:
            if entry.spec["seed"]:
                continue
            kind, activation = kinds[entry.spec["bias"], entry.spec["noise"] == 0], entry.spec["activation"]
            scale = entry.result["teacher"] if name == "flatness" else 1.0
            one = {"x": (entry.curves["step"] + 1).tolist(), "y": (entry.curves[name] / scale).tolist(),
                   "kind": kind, "colour": colours[activation]}  # fmt: skip
            if name == "flatness" and kind == "line":
                one["label"] = NAMES[activation]
            if name == "loss" and activation == "relu":
                one["label"] = styles[kind]
            series.append(one)
        log = "x" if name == "correlation" else "xy"
        panels.append({"x": "1 + steps", "y": label, "log": log, "series": series, "legend": "upper right"})
    return {"title": "Beyond · descent on the inner weights too: what the flattest of all looks like", "panels": panels}


def _drawn(numbers: Any) -> Any:
    from steppe.figures import panels

    return panels(numbers)


FIGURES = (
    Figure("thm2-all", "flatness of good and of bad interpolators, all sizes in proportion", GROWN,
           flatness_panels("Theorems 1, 2 · all sizes in proportion", "n", "n = 2d = m/4"), _drawn,
           {"smoke": 1, "paper": 20}),
    Figure("thm1-d", "flatness against the dimension", DIMENSION,
           flatness_panels("Theorems 1, 2 · the dimension alone", "d", "d"), _drawn, {"smoke": 1, "paper": 20}),
    Figure("thm2-n", "flatness against the sample, m = 4n", SAMPLE,
           flatness_panels("Theorems 1, 2 · the sample and the width", "n", "n = m/4"), _drawn,
           {"smoke": 1, "paper": 20}),
    Figure("lemma2", "singular values of the activations", GROWN, singular_values, _drawn, {"smoke": 1, "paper": 20}),
    Figure("lemma5", "the lower bound from the least norm against the flattest", FIG2, tightness, _drawn,
           {"smoke": 2, "paper": 360}),
    Figure("thm3", "population loss of flattest interpolators; balancedness", RATE, rate, _drawn,
           {"smoke": 2, "paper": 80}),
    Figure("approximate", "approximate interpolation of noisy labels", APPROXIMATE, approximate, _drawn,
           {"smoke": 1, "paper": 20}),
    Figure("flattest", "descent on the inner weights too", ALTERNATING, alternating, _drawn,
           {"smoke": 1, "paper": 120}),
)  # fmt: skip
