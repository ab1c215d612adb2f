"""The figures of mulayoff2021 with their claims: larger steps lead to smoother functions and flatter minima.

The supplement leaves some choices open. Figure 1: the sharpness at the start must lie between the two limits 2/η,
otherwise tripling η would change nothing; we scale the initialisation by 20 and run five seeds, because this depends on
the data. Figure 3: the start must be sharper than 2/η for nearly all step sizes, otherwise all runs end at one minimum;
we scale by 30. Six initialisations: with a warm-up of 5·10⁵ steps most runs from moderate starts would converge during
the warm-up; we take 5·10⁴ steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from steppe import figures
from steppe.experiments import Finding, Scale
from steppe.papers.mulayoff2021.descent import PAPER, Descent, function, merged


def all_parts(spec: Descent) -> tuple[Descent, ...]:
    """The experiment in parts, which run in parallel and are resumed one by one."""
    return tuple(replace(spec, part=k) for k in range(spec.parts))


# Figure 1: one start, η constant or tripled.


def training_points(arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {"x": arrays["x"].tolist(), "y": arrays["y"].tolist()}


def interpolant(f: Any, x: Any) -> dict[str, Any]:
    """The corners of f, to be joined by straight lines: its knots near the data, and two ends a little beyond it."""
    margin = 0.1 * np.ptp(x)
    low, high = float(x.min() - margin), float(x.max() + margin)
    at = [low, *f.second_derivative(low, high)[0].tolist(), high]
    return {"at": at, "value": f(at).tolist()}


ETA = 1e-4
ONE_START = Descent(scale=20.0, low=ETA, high=ETA, count=1, below=0.1)
SEEDS: dict[Scale, tuple[int, ...]] = {"smoke": (1, 3), "paper": (1, 2, 3, 4, 5)}


@PAPER.plot(
    "fig1", "one start, η = 1e-4 constant or tripled at loss 0.1", figures.two_trainings,
    runs={scale: [replace(ONE_START, seed=seed, factor=factor) for seed in seeds for factor in (1.0, 3.0)]
          for scale, seeds in SEEDS.items()},
)  # fmt: skip
def fig1(runs: Sequence[Any]) -> dict[str, Any]:
    """Losses and interpolants of the first seed, with the constant and with the tripled step size."""
    pair = runs[:2]
    labels = [f"η = {pair[0].spec['low']:g}", f"η × {pair[1].spec['factor']:g} when the loss is below 0.1"]
    curves = []
    for label, run in zip(labels, pair, strict=True):
        a, recorded = run.params, np.isfinite(run.params["losses"][:, 0])
        steps = [*a["moments"][recorded].tolist(), int(run.curves["step"][0])]
        losses = [*a["losses"][recorded, 0].tolist(), float(run.curves["loss"][0])]
        curves.append({"label": label, "step": steps, "loss": losses} | interpolant(function(a, 0), a["x"]))
    return {"title": "Fig. 1 · one start, two step sizes"} | training_points(pair[0].params) | {"runs": curves}


def falls_when_tripled(name: str, runs: Sequence[Any]) -> Finding:
    """The ratio tripled/constant of a number, seed by seed."""
    pairs: dict[int, dict[float, float]] = {}
    for run in runs:
        if bool(run.curves["counted"][0]):
            pairs.setdefault(run.spec["seed"], {})[run.spec["factor"]] = float(run.curves[name][0])
    ratios = sorted(pair[3.0] / pair[1.0] for pair in pairs.values() if len(pair) == 2)
    seeds = len({run.spec["seed"] for run in runs})
    detail = f"{len(ratios)} of {seeds} seeds converged; ratios " + ", ".join(f"{r:.3g}" for r in ratios)
    return Finding(max(ratios), len(ratios) == seeds and max(ratios) < 1, detail)


PAPER.claim(
    "fig1-smoother", "Figure 1", "Tripling the step size when the loss passes 0.1 leads to a smoother function.",
    "ratio of ∫|f″| g tripled/constant below 1 in every seed", needs=(fig1,),
)(partial(falls_when_tripled, "weighted"))  # fmt: skip
PAPER.claim(
    "fig1-flatter", "Figure 1", "Tripling the step size when the loss passes 0.1 leads to a flatter minimum.",
    "ratio of λ_max tripled/constant below 1 in every seed", needs=(fig1,),
)(partial(falls_when_tripled, "sharpness"))  # fmt: skip


# Figure 3, and what else the supplement shows of its runs.

MANY_RATES: dict[Scale, tuple[Descent, ...]] = {
    "paper": all_parts(Descent(scale=30.0, low=1e-4, high=0.5, count=200, parts=8, warmup=500_000)),
    "smoke": all_parts(Descent(scale=15.0, low=1e-3, high=0.4, count=12, parts=2, warmup=30_000, max_steps=150_000)),
}


def sharpness_panel(title: str, runs: Sequence[Any]) -> dict[str, Any]:
    """λ_max at the minimum, of its flattest implementation, and the bound of its function, against η."""
    rows = merged(runs)
    shown = {name: rows[name][rows["counted"]].tolist() for name in ("lr", "sharpness", "flattest")}
    bound = rows["function"][rows["counted"]].tolist()
    left_out = {"failed": rows["lr"][~rows["reached"]].tolist(), "excluded": rows["lr"][rows["warming"]].tolist()}
    return {"title": title, **shown, "bound": bound, **left_out}


@PAPER.plot("fig3", "sharpness against step size", figures.sharpness_curves, runs=MANY_RATES)
def fig3(runs: Sequence[Any]) -> dict[str, Any]:
    title = f"Fig. 3 · sharpness and step size, initialisation × {runs[0].spec['scale']:g}"
    return {"title": "", "panels": [sharpness_panel(title, runs)]}


@PAPER.plot("smoothness", "smoothness against step size, with the bound 1/η − ½", figures.smoothness, runs=MANY_RATES)
def smoothness(runs: Sequence[Any]) -> dict[str, Any]:
    rows = merged(runs)
    columns = {name: rows[name][rows["counted"]].tolist() for name in ("lr", "weighted", "centre")}
    return {"title": "Smoothness and step size"} | columns


def spread_over_rates(runs: Sequence[Any], most: int = 9) -> list[tuple[str, Any, int]]:
    """(label, run, row) of `most` step sizes whose runs count, evenly spread over the logarithm."""
    found = [
        (float(lr), run, k)
        for run in runs
        for k, (lr, counted) in enumerate(zip(run.curves["lr"], run.curves["counted"], strict=True))
        if counted
    ]
    found.sort(key=lambda triple: triple[0])
    places = np.unique(np.linspace(0, len(found) - 1, min(most, len(found))).round().astype(int))
    return [(f"η = {lr:.3g}", run, k) for lr, run, k in (found[place] for place in places)]


@PAPER.plot("s-fig1", "interpolants for several step sizes", figures.interpolants, runs=MANY_RATES)
def interpolants(runs: Sequence[Any]) -> dict[str, Any]:
    arrays = runs[0].params
    functions = [
        {"label": label} | interpolant(function(run.params, k), arrays["x"])
        for label, run, k in spread_over_rates(runs)
    ]
    title = "Supplement, Fig. 1 · interpolants by step size"
    return {"title": title} | training_points(arrays) | {"functions": functions}


@PAPER.plot("s-fig2", "second derivatives for several step sizes", figures.second_derivatives, runs=MANY_RATES)
def second_derivatives(runs: Sequence[Any]) -> dict[str, Any]:
    """f″ of the same functions, and the weight g."""
    from steppe.papers.mulayoff2021.theory import weight

    x = runs[0].params["x"]
    grid = np.linspace(x.min(), x.max(), 201)
    functions = []
    for label, run, k in spread_over_rates(runs):
        knots, jumps = function(run.params, k).second_derivative(float(x.min()), float(x.max()))
        functions.append({"label": label, "knots": knots.tolist(), "jumps": jumps.tolist()})
    title = "Supplement, Fig. 2 · f″ by step size (grey: the weight g)"
    return {
        "title": title, "x": x.tolist(), "grid": grid.tolist(), "weight": weight(x, grid).tolist(),
        "functions": functions,
    }  # fmt: skip


def falls_with_rate(name: str, runs: Sequence[Any]) -> Finding:
    """The rank correlation of a number with the step size."""
    from scipy.stats import spearmanr

    rows = merged(runs)
    lr, values = rows["lr"][rows["counted"]], rows[name][rows["counted"]]
    rank = float(spearmanr(lr, values).statistic)
    detail = f"{len(lr)} step sizes; from {values[0]:.4g} at η = {lr[0]:.3g} to {values[-1]:.4g} at {lr[-1]:.3g}"
    return Finding(rank, rank <= -0.9, detail)


PAPER.claim(
    "fig3-smoother", "Figure 3, supplement Figures 1, 2", "Solutions get smoother as the step size increases.",
    "rank correlation of ∫|f″| g with η ≤ −0.9", needs=(fig3,),
)(partial(falls_with_rate, "weighted"))  # fmt: skip
PAPER.claim(
    "fig3-centre", "Supplement, Figures 1, 2", "Solutions get smoother above all at the centre of the training data.",
    "rank correlation of ∫|f″| over the middle half with η ≤ −0.9", needs=(fig3,),
)(partial(falls_with_rate, "centre"))  # fmt: skip


@PAPER.claim(
    "fig3-counts", "Supplement I",
    "With most of 200 step sizes GD converges after the warm-up; fewer than the paper's 183, on other data.",
    "share above ½; every run is counted, excluded or not converged", needs=(fig3,),
)  # fmt: skip
def most_converge(runs: Sequence[Any]) -> Finding:
    rows = merged(runs)
    total, counted, warming = len(rows["lr"]), int(rows["counted"].sum()), int(rows["warming"].sum())
    diverged, failed = int(rows["diverged"].sum()), int((~rows["reached"]).sum())
    detail = (
        f"of {total} step sizes {warming} converged during the warm-up (excluded; the paper: 2 of 200), {failed} did "
        f"not converge, {diverged} of them diverged (the paper: 15)"
    )
    return Finding(counted / total, counted + warming + failed == total and counted > 0.5 * total, detail)


# Figure 3 of the supplement: six initialisations. It calls the first two large, and the last three moderate.

LARGE, MODERATE = (15.0, 10.0), (3.0, 1.0, 0.75)
FACTORS = (*LARGE, 5.0, *MODERATE)
RATES_OF_A_FACTOR: dict[Scale, Descent] = {
    "paper": Descent(scale=1.0, low=1e-3, high=1.5, count=100, parts=2, warmup=50_000),
    "smoke": Descent(scale=1.0, low=8e-3, high=0.2, count=5, warmup=20_000, max_steps=300_000),
}


def of_factor(runs: Sequence[Any], factor: float) -> list[Any]:
    return [run for run in runs if run.spec["scale"] == factor]


@PAPER.plot(
    "s-fig3", "sharpness against step size for six initialisations", figures.sharpness_curves,
    runs={scale: [part for factor in FACTORS for part in all_parts(replace(spec, scale=factor))]
          for scale, spec in RATES_OF_A_FACTOR.items()},
)  # fmt: skip
def s_fig3(runs: Sequence[Any]) -> dict[str, Any]:
    panels = [sharpness_panel(f"initialisation × {factor:g}", of_factor(runs, factor)) for factor in FACTORS]
    return {"title": "Supplement, Fig. 3 · sharpness and step size by initialisation", "panels": panels}


@PAPER.claim(
    "s-fig3-monotone", "Supplement, Figure 3",
    "From a large initialisation the sharpness falls monotonically with the step size.",
    "no rise above 1% from one η to the next, factors 15 and 10", needs=(s_fig3,),
)  # fmt: skip
def falls_from_large(runs: Sequence[Any]) -> Finding:
    """The largest relative rise of λ_max from one step size to the next."""
    rises = {}
    for factor in LARGE:
        _, values = sharpness_of(runs, factor)
        rises[factor] = float(np.max(values[1:] / values[:-1] - 1, initial=-1.0))
    detail = "; ".join(f"× {f:g}: largest rise {r:+.2%}" for f, r in rises.items())
    return Finding(max(rises.values()), max(rises.values()) <= 0.01, detail)


def sharpness_of(runs: Sequence[Any], factor: float) -> tuple[Any, Any]:
    """(step sizes, λ_max) of the runs that count from one initialisation."""
    rows = merged(of_factor(runs, factor))
    return rows["lr"][rows["counted"]], rows["sharpness"][rows["counted"]]


@PAPER.claim(
    "s-fig3-threshold", "Supplement, Figure 3",
    "From a moderate initialisation the sharpness is constant up to a threshold, and then follows 2/η.",
    "within 5% of both, factors 3, 1 and 0.75", needs=(s_fig3,),
)  # fmt: skip
def threshold_from_moderate(runs: Sequence[Any]) -> Finding:
    """Spread of λ_max below the threshold 2/λ, with λ the value at the smallest η; and distance from 2/η above it."""
    worst, parts = 0.0, []
    for factor in MODERATE:
        lr, values = sharpness_of(runs, factor)
        threshold = 2 / values[0]
        # Within a tenth of the threshold both regimes are possible.
        below, above = values[lr < 0.9 * threshold], (values * lr / 2)[lr > 1.1 * threshold]
        spread = float(np.ptp(below) / below.min()) if len(below) else float("inf")
        short = float(1 - above.min(initial=1.0))
        worst = max(worst, spread, short)
        parts.append(
            f"× {factor:g}: {len(below)} below η = {threshold:.3g} within {spread:.2%}, "
            f"{len(above)} above it at least {1 - short:.1%} of 2/η"
        )
    return Finding(worst, worst <= 0.05, "; ".join(parts))


@PAPER.claim(
    "s-fig3-counts", "Supplement, Figure 3",
    "From each initialisation most runs count: they converge after the warm-up.", "at least half, for every factor",
    needs=(s_fig3,),
)  # fmt: skip
def half_converge(runs: Sequence[Any]) -> Finding:
    parts, least = [], 1.0
    for factor in FACTORS:
        rows = merged(of_factor(runs, factor))
        counted, warming, diverged = (int(rows[name].sum()) for name in ("counted", "warming", "diverged"))
        failed = int((~rows["reached"]).sum())
        least = min(least, counted / len(rows["lr"]))
        parts.append(
            f"× {factor:g}: {counted} counted, {warming} in the warm-up, {failed} not converged ({diverged} diverged)"
        )
    return Finding(least, least >= 0.5, "; ".join(parts))
