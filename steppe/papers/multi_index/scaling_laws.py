"""Theorems 1 and 2, Lemmas 2 and 4 as scaling laws: the flatness of good and of bad interpolators over the sizes."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from steppe import figures
from steppe.experiments import Experiment, Finding, Scale, Shown, experiment
from steppe.papers.multi_index.setting import (
    PAPER,
    Activation,
    degree,
    drawn_at,
    fitted,
    interpolated,
    label,
    laws,
    listed,
    rows,
)
from steppe.store import Computed

Runs = Sequence[Any]

# One row for each size and seed. `bad`: the flattest interpolator with inner weights in a tilted subspace, `bad_loss`
# its population loss, `bad_norm` = ‖a‖² of the least norm; `teacher`: Theorem 4's network; `pointwise`: the bound below
# every interpolator; `q_low`, `q_high`: the cheapest and the dearest neuron; `singular_*`: of the bad inner weights' Φ.
COLUMNS = (
    "d", "n", "m", "seed", "exists", "bad", "bad_lower", "bad_loss", "bad_norm", "bad_largest", "lemma5", "teacher",
    "pointwise", "q_low", "q_high", "singular_1", "singular_2", "singular_n", "alignment",
)  # fmt: skip


@experiment("multi-index/scaling")
def scaling(
    checkpoint: Any, progress: Any, *, activation: Activation = "relu", d: tuple[int, ...] = (),
    n: tuple[int, ...] = (), m: tuple[int, ...] = (), nu: float = 0.3, seeds: int = 10, rtol: float = 1e-5,
) -> Computed:  # fmt: skip
    """A single-index model of the activation without noise, at sizes (d, n, m), with `seeds` draws for each size."""
    from steppe.papers.multi_index import theory

    def row(k: int) -> dict[str, float]:
        at, rng, act, link, U, x, y = drawn_at(k, seeds, activation, d, n, m)
        W = theory.within(at["m"], theory.tilted(U, nu, key=rng), key=rng)
        f = theory.features(W, x, act)
        values = np.linalg.svd(f.phi, compute_uv=False)
        found = dict.fromkeys(COLUMNS, math.nan) | at | {
            "exists": 0.0, "alignment": theory.alignment(W, U),
            "teacher": theory.flatness(theory.copies(link, U, at["m"]), x, act),
            "pointwise": theory.pointwise(x, y, at["m"], act), "q_low": f.q.min(), "q_high": f.q.max(),
            "singular_1": values[0], "singular_2": values[1], "singular_n": values[-1],
        }  # fmt: skip
        try:
            best = theory.flattest_interpolator(f.phi, y, f.q, f.p, rtol=rtol)
        except theory.NoInterpolatorError:
            return found
        least = theory.least_norm(f.phi, y)
        return found | {
            "exists": 1.0, "bad": best.flatness, "bad_lower": best.lower, "bad_norm": float(least @ least),
            "bad_largest": float(np.abs(least).max()), "lemma5": theory.from_least_norm(f, y, a=least),
            "bad_loss": theory.population_loss(W, best.a, act, link, U),
        }  # fmt: skip

    return Computed(rows(COLUMNS, seeds * len(d), row, checkpoint), {}, {})


# Quadratic neurons span d(d + 1)/2 dimensions: n stays well below that.
LAWS: tuple[Activation, ...] = ("relu", "quadratic")
GROWN = (16, 32, 48, 64, 96, 128)


def in_proportion(d: tuple[int, ...]) -> dict[str, Any]:
    return {"d": d, "n": tuple(2 * k for k in d), "m": tuple(8 * k for k in d)}


def dimension_alone(d: tuple[int, ...], n: int) -> dict[str, Any]:
    return {"d": d, "n": (n,) * len(d), "m": (4 * n,) * len(d)}


def sample_and_width(n: tuple[int, ...], d: int) -> dict[str, Any]:
    return {"d": (d,) * len(n), "n": n, "m": tuple(4 * k for k in n)}


def at_each_scale(smoke: dict[str, Any], paper: dict[str, Any]) -> dict[Scale, list[Experiment]]:
    return {
        "smoke": [scaling(activation=a, **smoke, seeds=4) for a in LAWS],
        "paper": [scaling(activation=a, **paper) for a in LAWS],
    }


def flatness_against(size: str, size_label: str, title: str) -> Shown:
    def numbers(runs: Runs) -> dict[str, Any]:
        panels = []
        ratio: list[dict[str, Any]] = []
        for run, colour in zip(runs, ("blue", "orange"), strict=True):
            c = interpolated(run)
            series = (
                fitted(c[size], c["bad"], "red", "bad interpolators")
                + fitted(c[size], c["teacher"], "green", "Theorem 4")
                + fitted(c[size], c["pointwise"], "blue", "lower bound")
            )
            panels.append({"x": size_label, "y": "flatness", "log": "xy", "title": label(run), "series": series})
            ratio += fitted(c[size], c["bad"] / c["teacher"], colour, label(run))
        panels.append({"x": size_label, "y": "bad / Theorem 4", "log": "xy", "title": "ratio", "series": ratio})
        return {"title": title, "panels": panels}

    return Shown(numbers, figures.panels)


IN_PROPORTION = at_each_scale(in_proportion((24, 48, 96)), in_proportion(GROWN))
ALL_SIZES = PAPER.figure(
    "thm2-all", "flatness of good and of bad interpolators, all sizes in proportion",
    runs=IN_PROPORTION, show=flatness_against("n", "n = 2d = m/4", "Theorems 1, 2 · all sizes in proportion"),
)  # fmt: skip
DIMENSION = PAPER.figure(
    "thm1-d", "flatness against the dimension", show=flatness_against("d", "d", "Theorems 1, 2 · the dimension alone"),
    runs=at_each_scale(dimension_alone((16, 32, 64), n=64), dimension_alone((24, 32, 48, 64, 96, 128), n=96)),
)  # fmt: skip
SAMPLE = PAPER.figure(
    "thm2-n", "flatness against the number of examples n, m = 4n",
    runs=at_each_scale(sample_and_width((24, 48, 96), d=32), sample_and_width((40, 60, 80, 120, 160, 240), d=40)),
    show=flatness_against("n", "n = m/4", "Theorems 1, 2 · the sample and the width"),
)  # fmt: skip


def meets(column: str, size: str, predicted: Callable[[int], float], runs: Runs) -> Finding:
    """Two-sided: the exponent is the predicted one. Measured is the largest difference."""
    found = laws(runs, lambda c: c[column], size, predicted)
    return Finding(max(law.away for law in found), all(law.met for law in found), listed(found))


def at_least(of: Callable[[Any], Any], size: str, predicted: Callable[[int], float], runs: Runs) -> Finding:
    """One-sided: it grows, and not more slowly than predicted. Measured is the least exponent over its prediction."""
    found = laws(runs, of, size, predicted)
    holds = all(law.found.value > 0 and law.at_least for law in found)
    return Finding(min(law.found.value / law.predicted for law in found), holds, listed(found))


PAPER.claim(
    "thm1-dimension", "Theorem 1", "The least flatness grows like d^{c/(c+1)} (Theorem 4's network).",
    "exponent c/(c+1) within its interval", needs=(DIMENSION,),
)(partial(meets, "teacher", "d", lambda c: c / (c + 1)))  # fmt: skip
PAPER.claim(
    "thm1-dimension-bound", "Theorem 1", "The lower bound of all interpolators grows like d^{c/(c+1)} too.",
    "exponent c/(c+1) within its interval", needs=(DIMENSION,),
)(partial(meets, "pointwise", "d", lambda c: c / (c + 1)))  # fmt: skip
PAPER.claim(
    "thm1-all", "Theorem 1",
    "With d, n, m in proportion the least flatness grows like d^{c/(c+1)} m^{(1−c)/(1+c)} ∝ n^{1/(c+1)}.",
    "exponent 1/(c+1) within its interval", needs=(ALL_SIZES,),
)(partial(meets, "teacher", "n", lambda c: 1 / (c + 1)))  # fmt: skip


@PAPER.claim(
    "thm1-sandwich", "Theorems 1, 4", "The least flatness is known up to a constant: bound ≤ least ≤ Theorem 4.",
    "ratio between 1 and 2 in every draw", needs=(ALL_SIZES, DIMENSION, SAMPLE),
)  # fmt: skip
def sandwich(all_sizes: Runs, dimension: Runs, sample: Runs) -> Finding:
    """Theorem 4's flatness over the lower bound of all interpolators: the largest ratio."""
    ratios: dict[str, list[Any]] = {}
    for run in (*all_sizes, *dimension, *sample):
        ratios.setdefault(label(run), []).append(run.curves["teacher"] / run.curves["pointwise"])
    joined = {name: np.concatenate(found) for name, found in ratios.items()}
    worst, least = max(r.max() for r in joined.values()), min(r.min() for r in joined.values())
    detail = "; ".join(
        f"{name}: median {np.median(r):.3f}, from {r.min():.3f} to {r.max():.3f}" for name, r in joined.items()
    )
    return Finding(float(worst), bool(least >= 1 and worst <= 2), detail)


PAPER.claim(
    "thm2-ratio", "Theorem 2, Informal Theorem 1",
    "Bad interpolators (Definition 2) are sharper than the flattest by a factor of at least n^{c/(c+1)}.",
    "exponent at least c/(c+1) within its interval, sizes in proportion", needs=(ALL_SIZES,),
)(partial(at_least, lambda c: c["bad"] / c["teacher"], "n", lambda c: c / (c + 1)))  # fmt: skip
PAPER.claim(
    "thm2-sample", "Theorem 2",
    "The flatness of bad interpolators grows at least like n^{c/(c+1)} m^{(1−c)/(1+c)} ∝ n^{1/(c+1)}.",
    "exponent at least 1/(c+1) within its interval, d fixed", needs=(SAMPLE,),
)(partial(at_least, lambda c: c["bad"], "n", lambda c: 1 / (c + 1)))  # fmt: skip


@PAPER.claim(
    "thm2-bad", "Definition 2, Theorem 2", "The population loss of bad interpolators stays large.",
    "loss ≥ half of predicting 0's, every draw", needs=(ALL_SIZES, DIMENSION, SAMPLE),
)  # fmt: skip
def bad_loss_is_large(all_sizes: Runs, dimension: Runs, sample: Runs) -> Finding:
    """The population loss of bad interpolators over E g²: the smallest."""
    power = {"relu": 0.5, "quadratic": 3.0}
    ratios = np.concatenate(
        [interpolated(run)["bad_loss"] / power[run.spec["activation"]] for run in (*all_sizes, *dimension, *sample)]
    )
    least = float(ratios.min())
    return Finding(least, least >= 0.5, f"{len(ratios)} draws, median {np.median(ratios):.2f}")


@PAPER.plot("lemma2", "singular values of the activations", figures.panels, runs=IN_PROPORTION)
def singular_values(runs: Runs) -> dict[str, Any]:
    panels = []
    for run in runs:
        c = run.curves
        series = (
            fitted(c["n"], c["singular_1"], "red", "largest")
            + fitted(c["n"], c["singular_2"], "orange", "second")
            + fitted(c["n"], c["singular_n"], "blue", "smallest")
        )
        title = f"{label(run)}: √(nm) ∝ n, √m ∝ n^½"
        panels.append({"x": "n = 2d = m/4", "y": "singular values of Φ", "log": "xy", "title": title, "series": series})
    return {"title": "Lemma 2 · one singular value of the activations is large", "panels": panels}


def spread(values: Any, size: Any) -> float:
    """Largest over smallest median over the sizes: a quantity of the order of 1 stays within a constant factor."""
    medians = [np.median(values[size == s]) for s in np.unique(size)]
    return float(max(medians) / min(medians))


@PAPER.claim(
    "lemma2-values", "Lemma 2", "The largest singular value of Φ is of order √(nm), the second of order √m.",
    "σ₁/√(nm) and σ₂/√m change by less than a factor 1.5 over all sizes", needs=(ALL_SIZES,),
)  # fmt: skip
def one_large_singular_value(runs: Runs) -> Finding:
    """The largest change; over 8-fold sizes n^{1/5} would make a factor 1.5."""
    worst, parts = 1.0, []
    for run in runs:
        c = run.curves
        first, second = c["singular_1"] / np.sqrt(c["n"] * c["m"]), c["singular_2"] / np.sqrt(c["m"])
        changes = spread(first, c["n"]), spread(second, c["n"])
        worst = max(worst, *changes)
        parts.append(f"{label(run)}: σ₁ by {changes[0]:.2f}, σ₂ by {changes[1]:.2f}")
    return Finding(worst, worst < 1.5, "; ".join(parts))


PAPER.claim(
    "lemma2-least", "Lemma 2", "The smallest singular value of Φ is at least of order √m.",
    "exponent at least ½ within its interval", needs=(ALL_SIZES,),
)(partial(at_least, lambda c: c["singular_n"], "n", lambda c: 0.5))  # fmt: skip


@PAPER.claim(
    "lemma4", "Lemmas 1, 4", "Every neuron of unit norm costs about the mean, 2√d (ReLU), 3 (96d²)^{1/3} (quadratic).",
    "q over the mean between ¼ and 4, for every neuron of every draw", needs=(DIMENSION,),
)  # fmt: skip
def costs_of_neurons(runs: Runs) -> Finding:
    """The largest factor by which a q differs from the value for E σ(z)², E σ′(z)² and ‖x‖² = d (c = 2: 3, 4)."""
    worst, parts = 1.0, []
    for run in runs:
        c = run.curves
        mean = 2 * np.sqrt(c["d"]) if degree(run) == 1 else 3 * (96 * c["d"] ** 2) ** (1 / 3)
        low, high = float((c["q_low"] / mean).min()), float((c["q_high"] / mean).max())
        worst = max(worst, high, 1 / low)
        parts.append(f"{label(run)}: {low:.2f} to {high:.2f}")
    return Finding(worst, worst <= 4, "; ".join(parts))


@PAPER.claim(
    "lemma6", "Lemma 6, Theorem 2",
    "‖Φ⁺y‖² ≥ ‖y‖²/σ₁² is far from tight for bad inner weights: there it is larger by a factor of order n.",
    "exponent of ‖Φ⁺y‖² σ₁²/(n E g²) in n is 1 within its interval", needs=(ALL_SIZES,),
)  # fmt: skip
def least_norm_of_bad(runs: Runs) -> Finding:
    """The exponents, sizes in proportion: the largest distance from 1."""
    found = laws(runs, lambda c: c["bad_norm"] * c["singular_1"] ** 2 / c["n"], "n", lambda c: 1.0)
    return Finding(max(law.away for law in found), all(law.met for law in found), listed(found))
