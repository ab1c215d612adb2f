"""Proposition E.2 and appendix E.1: the expected risk of three algorithms that see one example."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from steppe import figures
from steppe.experiments import Finding, experiment
from steppe.papers.conflicting_biases.paper import PAPER
from steppe.papers.conflicting_biases.theory import printed
from steppe.papers.conflicting_biases.theory.risks import (
    Folded,
    LogNormal,
    log_rate,
    mean,
    min_norm,
    min_norm_error,
    min_risk,
    min_sharpness,
    min_sharpness_error,
    ratios_to_max,
    single_entry_risk,
    square_rate,
    standard_error,
    truncated_min,
    unconstrained,
    unconstrained_risk,
)
from steppe.store import Computed

_ROUNDING = 1e-9
_FEW = "within 4 standard errors"

# Proposition E.2, on correlated log-normal inputs.

_LAW = LogNormal((1.0, 0.5, 1.5))
_SAMPLES = 100_000


def single_entry(as_printed: bool, which: str) -> Finding:
    """The stated expected error against losses on fresh examples, in standard errors of the difference."""
    rng = np.random.default_rng(5)
    moments = _LAW.moments()
    x0, y0 = _LAW(rng, _SAMPLES)
    x, y = _LAW(rng, _SAMPLES)
    u = (min_norm if which == "norm" else min_sharpness)(x0, y0)
    k = np.argmax(u, axis=1)
    ratio = u[np.arange(_SAMPLES), k]
    stated = printed.expected_error(ratio, k, moments) if as_printed else single_entry_risk(x0, y0, k, moments)
    difference = mean(stated - 0.5 * (np.sum(u * x, axis=1) - y) ** 2)
    score = abs(difference.value) / standard_error(difference)
    detail = f"stated {stated.mean():.4f}, difference {difference.value:+.4f}; log-normal inputs"
    return Finding(score, score < 4, detail)


PAPER.misprint(
    "propE.2-norm", "Proposition E.2 i",
    printed=("E R(A_ℓ1) = ½(σ² + E Σ_kk y²/x² + E μ_k y/x), k = k_max.", _FEW),
    corrected=("E R(A_ℓ1) = ½(σ² + E Σ_kk y²/x² − 2E μ_k y/x), k = k_max.", _FEW),
)(partial(single_entry, which="norm"))  # fmt: skip
PAPER.misprint(
    "propE.2-sharpness", "Proposition E.2 ii",
    printed=("E R(A_S) = ½(σ² + E Σ_kk y²/x² + E μ_k y/x), k = k_min.", _FEW),
    corrected=("E R(A_S) = ½(σ² + E Σ_kk y²/x² − 2E μ_k y/x), k = k_min.", _FEW),
)(partial(single_entry, which="sharpness"))  # fmt: skip


@PAPER.misprint(
    "propE.2-optimal", "Proposition E.2 iii",
    printed=("A_opt is the root of Σ^{−½}(P⊥μ_Σ + y x_Σ/‖x_Σ‖²), which is ≥ 0.",
             "no negative entry; equal to the optimum"),
    corrected=("A_opt is the root of the minimiser over u ≥ 0: another vector where that one has negative entries.",
               "no negative entry; equal to the optimum"),
)  # fmt: skip
def optimal(as_printed: bool) -> Finding:
    """As printed: how often u has a negative entry. Corrected: the difference to the optimum over u ≥ 0 by SLSQP."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(6)
    law = LogNormal((1.0, 0.5, 1.5), noise=0.5)
    moments = law.moments()
    x, y = law(rng, 2000)
    free = unconstrained(x, y, moments)
    negative = (free < 0).any(axis=1)
    if as_printed:
        share = float(negative.mean())
        return Finding(share, share == 0, f"{negative.sum()} of {len(y)} examples: a root of a negative number")
    chosen = np.concatenate([np.flatnonzero(negative)[:8], np.flatnonzero(~negative)[:4]])
    worst = 0.0
    for i in chosen:
        found = minimize(
            moments.risk, min_norm(x[i], y[i]), jac=lambda u: moments.Sigma @ u - moments.mu,
            bounds=[(0, None)] * 3, constraints={"type": "eq", "fun": lambda u, i=i: x[i] @ u - y[i]}, method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 300},
        )  # fmt: skip
        worst = max(worst, abs(float(moments.risk(min_risk(x[i], y[i], moments))) - float(found.fun)))
    return Finding(worst, worst < 1e-7, f"largest difference of risks, {len(chosen)} examples")


@PAPER.claim(
    "propE.2-optimal-risk", "Proposition E.2 iii",
    "The stated risk is the risk of the stated vector, and a lower bound of the least risk.", "difference at rounding",
)  # fmt: skip
def optimal_formula() -> Finding:
    """The stated risk of A_opt is the risk of its u, and a lower bound of the true risk."""
    rng = np.random.default_rng(7)
    moments = _LAW.moments()
    x, y = _LAW(rng, 5000)
    stated = unconstrained_risk(x, y, moments)
    worst = float(np.abs(stated - moments.risk(unconstrained(x, y, moments))).max())
    excess = float((moments.risk(min_risk(x, y, moments)) - stated).min())
    return Finding(worst, worst < _ROUNDING and excess > -_ROUNDING, f"true risk − stated ≥ {excess:.1e}")


# Appendix E.1, the folded Gaussian: the expected error of the least norm is finite, that of the least sharpness not.


@experiment("conflicting-biases/folded")
def folded_errors(
    checkpoint: Any, progress: Any, *, n: int = 2, samples: int = 1_000_000,
    deltas: tuple[float, ...] = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003), seed: int = 0,
) -> Computed:  # fmt: skip
    """Monte Carlo against the exact integrals, in n dimensions; for the least sharpness only over x_min > δ."""
    law = Folded(n)
    moments = law.moments()
    x, y = law(np.random.default_rng(seed), samples)
    norm = mean(moments.risk(min_norm(x, y)))
    flat = moments.risk(min_sharpness(x, y))
    # The best u is 1, with risk 0, for every draw: a few draws show it.
    best = mean(moments.risk(min_risk(x[:1000], y[:1000], moments)))
    drawn = [mean(np.where(x.min(axis=1) > delta, flat, 0)) for delta in deltas]
    curves = {
        "delta": np.array(deltas),
        "drawn": np.array([e.value for e in drawn]),
        "drawn_error": np.array([standard_error(e) for e in drawn]),
        "exact": np.array([min_sharpness_error(n, delta) for delta in deltas]),
        "asymptote": np.array([square_rate(n) / (2 * delta) for delta in deltas]),
    }
    result = {"norm": norm.value, "norm_error": standard_error(norm), "norm_exact": min_norm_error(n)}
    return Computed(curves, {}, result | {"best": best.value})


@PAPER.plot(
    "propE2", "expected errors on the folded Gaussian", figures.panels,
    runs={"smoke": tuple(folded_errors(n=n, samples=50_000) for n in (2, 3, 5)),
          "paper": tuple(folded_errors(n=n) for n in (2, 3, 5))},
)  # fmt: skip
def prop_e2(entries: Sequence[Any]) -> dict[str, Any]:
    series: list[dict[str, Any]] = []
    for entry, colour in zip(entries, ("blue", "orange", "green"), strict=True):
        curves = entry.curves
        inverse, error = 1 / curves["delta"], (2 * curves["drawn_error"]).tolist()
        series += [
            figures.series(inverse, curves["exact"], "line", colour, f"n = {entry.spec['n']}, exact"),
            figures.series(inverse, curves["drawn"], "points", colour, error=error),
            figures.series(inverse, curves["asymptote"], "dotted", colour),
        ]
    n = [e.spec["n"] for e in entries]
    exact, found, error = ([e.result[name] for e in entries] for name in ("norm_exact", "norm", "norm_error"))
    norm = [
        figures.series(n, exact, "line", "green", "least norm, exact"),
        figures.series(n, found, "points", "ink", "Monte Carlo ± 2 s.e.", error=[2 * e for e in error]),
    ]
    return {
        "title": "Proposition E.2 · one example of a folded Gaussian",
        "panels": [
            {"x": "1/δ", "y": "E[error; x_min > δ], least sharpness", "log": "xy", "series": series,
             "title": "grows like 1/δ: there is no expectation"},
            {"x": "dimension n", "y": "expected error", "series": norm, "title": "least norm"},
        ],
    }  # fmt: skip


@PAPER.claim(
    "appE.1-moments", "appendix E.1", "Σ, μ and σ² of the folded Gaussian are as stated; A_opt is 1, with risk 0.", _FEW
)
def folded_moments() -> Finding:
    """Σ, μ, σ² of the folded Gaussian against draws, in standard errors; A_opt = 1 with risk 0."""
    law = Folded(3)
    x, y = law(np.random.default_rng(8), 200_000)
    moments = law.moments()
    pairs = [(x[:, 0] * x[:, 1], moments.Sigma[0, 1]), (x[:, 0] * y, moments.mu[0]), (y**2, moments.sigma2)]
    scores = [abs(mean(v).value - float(exact)) / standard_error(mean(v)) for v, exact in pairs]
    best = min_risk(x[:100], y[:100], moments)
    off = float(np.abs(best - 1).max() + np.abs(moments.risk(best)).max())
    return Finding(max(scores), max(scores) < 4 and off < _ROUNDING, f"A_opt off 1 and risk off 0 by {off:.1e}")


@PAPER.misprint(
    "appE.1-norm", "appendix E.1", needs=(prop_e2,),
    printed=("Folded Gaussian: E R(A_ℓ1) = ½(σ² + E⟨1,x⟩²/x_max² + (2n−2+π)/π E⟨1,x⟩/x_max).", _FEW),
    corrected=("Folded Gaussian: E R(A_ℓ1) = ½(σ² + E⟨1,x⟩²/x_max² − 2(2n−2+π)/π E⟨1,x⟩/x_max) is finite.", _FEW),
)  # fmt: skip
def folded_norm(as_printed: bool, runs: Sequence[Any]) -> Finding:
    """The stated expected error against draws, in standard errors; the two ratios are within n and n²."""
    scores, stated, within = [], [], True
    for entry in runs:
        r, n = entry.result, entry.spec["n"]
        first, second = ratios_to_max(n)
        moments = Folded(n).moments()
        plus = 0.5 * (moments.sigma2 + second + float(moments.mu[0]) * first)
        stated.append(plus if as_printed else r["norm_exact"])
        scores.append(abs(stated[-1] - r["norm"]) / r["norm_error"])
        within &= first <= n and second <= n**2
    detail = "stated " + ", ".join(f"{v:.4f}" for v in stated) + " for n = 2, 3, 5"
    return Finding(max(scores), max(scores) < 4 and within, detail)


@PAPER.claim(
    "appE.1-infinite", "appendix E.1", "Folded Gaussian: E R(A_S) is infinite (it grows like 1/δ over x_min > δ).",
    "slope in ln(1/δ) > 0.95", needs=(prop_e2,),
)  # fmt: skip
def folded_infinite(runs: Sequence[Any]) -> Finding:
    """E[error of the least sharpness; x_min > δ] by quadrature, by draws and by its asymptote: its slope in 1/δ."""
    slopes, scores = [], []
    for entry in runs:
        c = entry.curves
        slopes.append(float(np.log(c["exact"][-1] / c["exact"][-2]) / np.log(c["delta"][-2] / c["delta"][-1])))
        scores += (np.abs(c["drawn"] - c["exact"]) / np.maximum(c["drawn_error"], 1e-12))[:5].tolist()
    holds = min(slopes) > 0.95 and max(scores) < 4.5
    return Finding(min(slopes), holds, f"draws within {max(scores):.1f} standard errors for δ ≥ 0.01")


@PAPER.claim(
    "appE.1-infinite-ratio", "appendix E.1", "E⟨1,x⟩/x_min is infinite: it grows by n(n−1)2/π per e in 1/δ.",
    "ratio 1 within 0.1%",
)  # fmt: skip
def folded_log() -> Finding:
    """E[⟨1, x⟩/x_min; x_min > δ] grows by n(n − 1)2/π for every factor e in 1/δ."""
    ratios = []
    for n in (2, 3, 5):
        a, b = truncated_min(n, 1e-6)[0], truncated_min(n, 1e-7)[0]
        ratios.append(float((b - a) / np.log(10) / log_rate(n)))
    return Finding(min(ratios), max(abs(r - 1) for r in ratios) < 1e-3, "ratio to n(n − 1)2/π for n = 2, 3, 5")
