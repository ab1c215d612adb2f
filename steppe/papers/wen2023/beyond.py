"""Beyond the paper: all runs in one picture, question 2, sample complexity, a penalised bias, and further checks."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np

from steppe.experiments import Finding
from steppe.figures import panels, series
from steppe.papers.wen2023._paper import PAPER, joint_figure, training_figure
from steppe.papers.wen2023.figures_1_to_6 import fig1a, fig1b, fig2a, fig4a, fig4b, fig6a, fig6b
from steppe.papers.wen2023.figures_7_to_11 import fig8a, fig8b, fig9a, fig9b, fig10a, fig10b, fig11a, fig11b
from steppe.papers.wen2023.training import Training, sam

# Flat is not enough: how flat every run ended, relative to the least possible trace, against its test error. Shown are
# all figures with a lower bound of the trace and an accuracy, with label, colour and kind of point.

_SERIES = (
    ("I: no bias, 1-SAM", "green", "points", (fig1b, fig8b)),
    ("I: no bias, weight decay", "green", "crosses", (fig1a, fig8a)),
    ("I: BatchNorm, 1-SAM", "orange", "points", (fig2a, fig10a)),
    ("II: bias, 1-SAM", "red", "points", (fig4b, fig9b, fig11b)),
    ("II: bias, weight decay", "red", "crosses", (fig4a, fig9a, fig11a)),
    ("III: LayerNorm, 1-SAM", "blue", "points", (fig6a, fig6b, fig10b)),
)
_SCATTERED = [figure for *_, figures in _SERIES for figure in figures]
# An error of no test point in 10,000 is drawn at this height.
_FLOOR = 3e-5


def scatter_numbers(*by_figure: Sequence[Any]) -> dict[str, Any]:
    found = dict(zip(_SCATTERED, by_figure, strict=True))
    points = []
    for label, colour, kind, figures in _SERIES:
        chosen = [e for figure in figures for e in found[figure]]
        x = [e.result["trace_parts"]["gauss_newton"] / e.result["bound"] for e in chosen]
        y = [max(1 - e.result["final"]["test_accuracy"], _FLOOR) for e in chosen]
        points.append(series(x, y, kind, colour, label))
    panel = {
        "x": "trace (Gauss-Newton part) over the bound for interpolators", "y": f"test error (0 drawn at {_FLOOR:.0e})",
        "series": points, "log": "xy", "places": [{"at": 1.0, "label": "flattest"}],
    }  # fmt: skip
    return {"title": "Flat is not enough: all runs", "panels": [panel]}


joint_figure("scatter", "flatness against test error of all runs", _SCATTERED, scatter_numbers, panels)

# Question 2 of the paper: II (bias) and III (LayerNorm) both have flattest minimisers that memorise, and 1-SAM finds
# them in II only. Which property besides sharpness shows where it goes?

_SCENARIOS = (("I: no bias", "green", fig1b), ("II: bias", "red", fig4b), ("III: LayerNorm", "blue", fig6a))
_PROPERTIES = {
    "test_accuracy": ("test accuracy", ""),
    "sharing": ("share of the examples a neuron fires on", ""),
    "feature_rank": ("rank of the features", "y"),
    "active_neurons": ("active neurons", "y"),
    "path_norm": ("path norm", "y"),
    "normalised_margin": ("normalised margin", ""),
}


def question_2_numbers(*by_scenario: Sequence[Any]) -> dict[str, Any]:
    shown: list[dict[str, Any]] = []
    for name, (label, log) in _PROPERTIES.items():
        lines = [
            _curve(e, name, colour, scenario if k == 0 and not shown else None)
            for (scenario, colour, _), runs in zip(_SCENARIOS, by_scenario, strict=True)
            for k, e in enumerate(runs)
        ]
        shown.append({"x": "epochs", "y": label, "series": lines, "log": "x" + log})
    return {"title": "Question 2: what 1-SAM's minima have besides flatness", "panels": shown}


def _curve(run: Any, name: str, colour: str, label: str | None) -> dict[str, Any]:
    """A thin line against epochs; epoch 0 is drawn at ½ on the logarithmic axis."""
    return series(run.curves["epoch"].clip(min=0.5), run.curves[name], "thin", colour, label)


joint_figure(
    "question2", "properties of the minima along 1-SAM", [row[2] for row in _SCENARIOS], question_2_numbers, panels
)


# Sample complexity: 1-SAM on n examples for every n, the same number of steps each, without bias and with it.


def _sizes(sizes: Sequence[int], steps: int, seeds: int, **rest: Any) -> tuple[Training, ...]:
    return tuple(
        Training(network, (sam(0.01, 0.05, steps // n),), n=n, seed=seed, per_decade=5, **rest)
        for network in ("no-bias", "bias")
        for n in sizes
        for seed in range(seeds)
    )


def by_size(runs: Sequence[Any], network: str, name: str) -> dict[int, list[float]]:
    """The last values of a curve by the size of the training set."""
    found: dict[int, list[float]] = {}
    for e in runs:
        if e.spec["network"] == network:
            found.setdefault(e.spec["n"], []).append(e.result["final"][name])
    return found


@PAPER.plot(
    "sample-complexity", "test loss of 1-SAM against n, with the rate d/n", panels,
    runs={"smoke": _sizes((50, 100, 200), 150_000, 1, width=200, test=4_000),
          "paper": _sizes((25, 35, 50, 70, 100, 140, 200, 280, 400), 2_000_000, 5)},
)  # fmt: skip
def sample_complexity(runs: Sequence[Any]) -> dict[str, Any]:
    found_series, sizes = [], sorted(by_size(runs, "no-bias", "test_loss"))
    for network, colour in (("no-bias", "green"), ("bias", "red")):
        found = by_size(runs, network, "test_loss")
        n, values = zip(*((n, v) for n, values in found.items() for v in values), strict=True)
        found_series.append(series(n, values, "points", colour))
        found_series.append(series(sizes, [median(found[n]) for n in sizes], "line", colour, f"{network}, median"))
    found_series.append(series(sizes, [runs[0].spec["d"] / n for n in sizes], "dashed", "ink", "d/n"))
    panel = {"x": "training examples n", "y": "test loss of 1-SAM", "series": found_series, "log": "xy"}
    return {"title": "Sample complexity on P_xor against d/n (theorem 3.1)", "panels": [panel]}


@PAPER.claim(
    "thm3.1-rate", "Theorem 3.1", "Without bias 1-SAM keeps below the rate d/n from fewer examples on than with bias.",
    "smallest n from which the median test loss stays below d/n: without bias over with bias, below 1",
    needs=(sample_complexity,),
    control="tests/papers/wen2023/test_run_claims.py::test_the_bias_net_fails_the_claim_on_the_rate",
)  # fmt: skip
def sample_rate(runs: Sequence[Any]) -> Finding:
    """The theorem bounds the loss of flattest nets without bias only; the nets with bias are the baseline."""
    from_on, listed = {}, []
    for network in ("no-bias", "bias"):
        found, d = by_size(runs, network, "test_loss"), runs[0].spec["d"]
        above = [n for n, losses in found.items() if median(losses) > d / n]
        below = [n for n in found if n > max(above, default=0)]
        from_on[network] = float(min(below, default=np.inf))
        listed.append(f"{network}: {', '.join(f'{median(v):.2g} at {n}' for n, v in sorted(found.items()))}")
    share = from_on["no-bias"] / from_on["bias"] if np.isfinite(from_on["no-bias"]) else np.inf
    return Finding(share, share < 1, "; ".join(listed))


# Weight decay of the first layer's bias alone. Without it this is the first stage of figure 4b.


def _penalties(penalties: Sequence[float], epochs: int, seeds: int, **rest: Any) -> tuple[Training, ...]:
    return tuple(
        Training("bias", (sam(0.01, 0.05, epochs, bias_decay=penalty),), seed=seed, **rest)
        for penalty in penalties
        for seed in range(seeds)
    )


@PAPER.plot(
    "bias-penalty", "1-SAM with weight decay of the bias alone", panels,
    runs={"smoke": _penalties((0.0, 0.1), 1_000, 2, width=100, test=4_000, per_decade=10),
          "paper": _penalties((0.0, 0.01, 0.1, 1.0), 5_000, 3, width=200)},
)  # fmt: skip
def bias_penalty(runs: Sequence[Any]) -> dict[str, Any]:
    colours = ("red", "orange", "green", "blue", "ink")
    penalties = sorted({e.spec["stages"][0]["bias_decay"] for e in runs})
    shown = []
    for name, label, log in (("test_accuracy", "test accuracy", "x"), ("trace", "tr ∇²L", "xy")):
        lines = [
            _curve(e, name, colour, f"decay {penalty:g}" if k == 0 else None)
            for penalty, colour in zip(penalties, colours, strict=False)
            for k, e in enumerate(e for e in runs if e.spec["stages"][0]["bias_decay"] == penalty)
        ]
        shown.append({"x": "epochs", "y": label, "series": lines, "log": log})
    return {"title": "Scenario II when the bias is penalised (1-SAM)", "panels": shown}


@PAPER.claim(
    "bias-penalised", "Beyond", "Weight decay of the bias alone lets 1-SAM generalise in scenario II.",
    "with the best penalty at most half as many wrong answers as without", needs=(bias_penalty,),
)  # fmt: skip
def penalised(runs: Sequence[Any]) -> Finding:
    """The share of wrong answers with the best of the penalties, over the share without one."""
    by: dict[float, list[float]] = {}
    for e in runs:
        by.setdefault(e.spec["stages"][0]["bias_decay"], []).append(e.result["final"]["test_accuracy"])
    wrong = {penalty: 1 - median(v) for penalty, v in by.items()}
    best = min(share for penalty, share in wrong.items() if penalty > 0)
    # If nothing is wrong without a penalty, a penalty cannot give anything back.
    left = best / wrong[0.0] if wrong[0.0] > 0 else float("inf")
    detail = ", ".join(f"decay {p:g}: {median(v):.3f}" for p, v in sorted(by.items()))
    return Finding(left, left <= 0.5, detail)


# Further checks that a reviewer of the paper would ask for.


def _next_check(id: str, title: str, paper: Training, smoke: int) -> None:
    training_figure(
        id, title, paper, smoke=(smoke,), smoke_width=100, smoke_seeds=1, paper_seeds=3, heading="Next check"
    )


_SAM = sam(0.01, 0.05, 5_000)
_next_check("next-depth4", "4 layers, bias, 1-SAM", Training("bias", (_SAM,), depth=4, width=100), 150)
_next_check(
    "next-batch-norm", "standard BatchNorm, 1-SAM", Training("batch-norm", (sam(0.005, 0.1, 2_000),), width=100), 60
)
_next_check(
    "next-layer-norm", "standard LayerNorm, 1-SAM", Training("layer-norm", (sam(0.005, 0.1, 5_000),), width=100), 100
)
# Parity is an odd function. A ReLU net without bias has a linear odd part and cannot fit it.
_next_check(
    "next-parity", "3-parity, bias, 1-SAM",
    Training("bias", (replace(_SAM, epochs=20_000),), data="parity", n=1_000, d=20), 300,
)  # fmt: skip
_next_check(
    "next-mixture", "Gaussian mixture, bias, 1-SAM",
    Training("bias", (replace(_SAM, epochs=20_000),), data="mixture"), 2_000,
)  # fmt: skip
