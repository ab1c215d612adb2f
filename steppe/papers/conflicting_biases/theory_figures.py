"""Figures of what theory says: Theorems B.1 and B.2, Proposition E.2, appendix F."""

from collections.abc import Sequence
from typing import Any

from steppe.experiments._paper import Figure
from steppe.papers.conflicting_biases.classifiers import Classifiers
from steppe.papers.conflicting_biases.drawn import drawn
from steppe.papers.conflicting_biases.finished import spec_of
from steppe.papers.conflicting_biases.flow_bias import FlowBias
from steppe.papers.conflicting_biases.folded_errors import FoldedErrors
from steppe.papers.conflicting_biases.stability import Stability

_THREE = ("blue", "orange", "green")


def numbers_bias(entries: Sequence[Any]) -> dict[str, Any]:
    import numpy as np

    panels: list[dict[str, Any]] = []
    groups = (
        ("two layers, three inputs", [e for e in entries if e.spec["depth"] == 2]),
        ("one input, two to four layers", [e for e in entries if e.spec["x"] == entries[0].spec["x"]]),
    )
    for title, group in groups:
        series = []
        for entry, colour in zip(group, _THREE, strict=True):
            alpha, excess = entry.curves["alpha"], entry.curves["excess"]
            p = spec_of(FlowBias, entry).exponent()
            name = f"x = {tuple(entry.spec['x'])}" if title[0] == "t" else f"L = {entry.spec['depth']}"
            series.append({"x": alpha.tolist(), "y": excess.tolist(), "kind": "points", "colour": colour,
                           "label": f"{name}: ∝ α^{p:.3g}"})  # fmt: skip
            line = excess[0] * (alpha / alpha[0]) ** p
            shown = line < 3 * np.max(excess)
            series.append({"x": alpha[shown].tolist(), "y": line[shown].tolist(), "kind": "dashed", "colour": colour})
        panels.append({"x": "scale α of the start", "y": "‖w^L‖₁ of the flow's end − least", "log": "xy",
                       "title": title, "series": series})  # fmt: skip
    return {"title": "Theorem B.1 · the flow from a small start ends near the least norm", "panels": panels}


def numbers_stability(entries: Sequence[Any]) -> dict[str, Any]:
    import numpy as np

    panels = []
    for entry in entries:
        curves = entry.curves
        done = curves["converged"].astype(bool)
        limit, sharpness = curves["limit"][done], curves["sharpness"][done]
        ends = [float(limit.min()), float(limit.max())]
        panels.append(
            {"x": "2/η", "y": "sharpness of the limit", "log": "xy",
             "title": f"L = {entry.spec['depth']}: {done.sum()} of {len(done)} runs converged", "series": [
                {"x": limit.tolist(), "y": np.maximum(sharpness, 1e-3 * limit).tolist(), "kind": "points",
                 "colour": "blue", "label": "gradient descent"},
                {"x": ends, "y": ends, "kind": "dashed", "colour": "ink", "label": "sharpness = 2/η"},
            ]}
        )  # fmt: skip
    return {"title": "Theorem B.2 · no limit is sharper than 2/η", "panels": panels}


def numbers_folded(entries: Sequence[Any]) -> dict[str, Any]:
    series: list[dict[str, Any]] = []
    for entry, colour in zip(entries, _THREE, strict=True):
        curves, n = entry.curves, entry.spec["n"]
        inverse = (1 / curves["delta"]).tolist()
        series += [
            {"x": inverse, "y": curves["exact"].tolist(), "kind": "line", "colour": colour, "label": f"n = {n}, exact"},
            {"x": inverse, "y": curves["drawn"].tolist(), "kind": "points", "colour": colour,
             "error": (2 * curves["drawn_error"]).tolist()},
            {"x": inverse, "y": curves["asymptote"].tolist(), "kind": "dotted", "colour": colour},
        ]  # fmt: skip
    n = [e.spec["n"] for e in entries]
    norm = [
        {"x": n, "y": [e.result["norm_exact"] for e in entries], "kind": "line", "colour": "green",
         "label": "least norm, exact"},
        {"x": n, "y": [e.result["norm"] for e in entries], "kind": "points", "colour": "ink",
         "error": [2 * e.result["norm_error"] for e in entries], "label": "Monte Carlo ± 2 s.e."},
    ]  # fmt: skip
    return {
        "title": "Proposition E.2 · one example of a folded Gaussian",
        "panels": [
            {"x": "1/δ", "y": "E[error; x_min > δ], least sharpness", "log": "xy", "series": series,
             "title": "grows like 1/δ: there is no expectation"},
            {"x": "dimension n", "y": "expected error", "series": norm, "title": "least norm"},
        ],
    }  # fmt: skip


def numbers_classifiers(entries: Sequence[Any]) -> dict[str, Any]:
    (entry,) = entries
    curves, panels = entry.curves, []
    mean = curves["mean"].tolist()
    for name, title in (("max_margin", "max-margin, b = −½"), ("min_sharpness", "least sharpness, b = 0")):
        seen = curves[name] > 0
        panels.append(
            {"x": "‖μ‖", "y": "expected error", "log": "y", "title": title, "legend": "lower left", "series": [
                {"x": mean, "y": curves[f"{name}_exact"].tolist(), "kind": "line", "colour": "green",
                 "label": "exact"},
                {"x": curves["mean"][seen].tolist(), "y": curves[name][seen].tolist(), "kind": "points",
                 "colour": "ink", "error": (2 * curves[f"{name}_error"][seen]).tolist(), "label": "Monte Carlo"},
                {"x": mean, "y": curves[f"{name}_projected"].tolist(), "kind": "dashed", "colour": "blue",
                 "label": "Φ(−(1−c)‖μ‖/√2)"},
                {"x": mean, "y": curves[f"{name}_printed"].tolist(), "kind": "dotted", "colour": "red",
                 "label": "as printed"},
            ], "limits": {"y": [1e-7, 2]}}
        )  # fmt: skip
    return {"title": f"Appendix F · two points on the sphere, d = {entry.spec['d']}", "panels": panels}


_BIASES = (FlowBias(), FlowBias(x=(1.0, 0.8)), FlowBias(x=(1.0, 0.6, -0.3)), FlowBias(depth=3), FlowBias(depth=4))

FIGURES = (
    Figure("thmB1", "the norm of the flow's end as the start shrinks", {"smoke": _BIASES, "paper": _BIASES},
           numbers_bias, drawn("panels"), {"smoke": 1, "paper": 1}),
    Figure("thmB2", "sharpness of the limits of gradient descent against 2/η",
           {"smoke": (Stability(examples=3, runs=200, steps=5_000),
            Stability(depth=3, examples=3, runs=200, steps=5_000)),
            "paper": (Stability(), Stability(depth=3))},
           numbers_stability, drawn("panels"), {"smoke": 3, "paper": 8}),
    Figure("propE2", "expected errors on the folded Gaussian",
           {"smoke": tuple(FoldedErrors(n, samples=50_000) for n in (2, 3, 5)),
            "paper": tuple(FoldedErrors(n) for n in (2, 3, 5))},
           numbers_folded, drawn("panels"), {"smoke": 1, "paper": 6}),
    Figure("appF", "errors of the max-margin and of the flattest classifier",
           {"smoke": (Classifiers(means=(0.0, 1.0, 2.0, 3.0, 4.0, 5.0), samples=50_000),), "paper": (Classifiers(),)},
           numbers_classifiers, drawn("panels"), {"smoke": 2, "paper": 10}),
)  # fmt: skip
