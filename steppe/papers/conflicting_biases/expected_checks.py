"""Proposition E.2 and its folded Gaussian, measured against optimisers, quadrature and draws."""

import numpy as np
from scipy.optimize import minimize

from steppe.experiments._paper import Evidence, Finding
from steppe.papers.conflicting_biases.theory import LogNormal, printed
from steppe.papers.conflicting_biases.theory.flow import (
    Folded,
    log_rate,
    min_norm,
    min_risk,
    min_sharpness,
    ratios_to_max,
    single_entry_risk,
    truncated_min,
    unconstrained,
    unconstrained_risk,
)
from steppe.papers.conflicting_biases.theory.risk import mean, standard_error

ROUNDING = 1e-9
LAW = LogNormal((1.0, 0.5, 1.5))
SAMPLES = 100_000


def single_entry(which: str, *, as_printed: bool) -> Finding:
    """The stated expected error against losses on fresh examples, in standard errors of the difference."""
    rng = np.random.default_rng(5)
    moments = LAW.moments()
    x0, y0 = LAW(rng, SAMPLES)
    x, y = LAW(rng, SAMPLES)
    u = (min_norm if which == "norm" else min_sharpness)(x0, y0)
    k = np.argmax(u, axis=1)
    ratio = u[np.arange(SAMPLES), k]
    stated = printed.expected_error(ratio, k, moments) if as_printed else single_entry_risk(x0, y0, k, moments)
    difference = mean(stated - 0.5 * (np.sum(u * x, axis=1) - y) ** 2)
    score = abs(difference.value) / standard_error(difference)
    detail = f"stated {stated.mean():.4f}, difference {difference.value:+.4f}; log-normal inputs"
    return Finding(score, score < 4, detail)


def optimal(*, as_printed: bool) -> Finding:
    """Prop. E.2 iii: how often its u is no square (printed), or misses the optimum over u ≥ 0 of SLSQP (corrected)."""
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


def optimal_formula() -> Finding:
    """The stated risk of A_opt against the risk of its u: equal always; a lower bound of the true one."""
    rng = np.random.default_rng(7)
    moments = LAW.moments()
    x, y = LAW(rng, 5000)
    stated = unconstrained_risk(x, y, moments)
    worst = float(np.abs(stated - moments.risk(unconstrained(x, y, moments))).max())
    excess = float((moments.risk(min_risk(x, y, moments)) - stated).min())
    return Finding(worst, worst < ROUNDING and excess > -ROUNDING, f"true risk − stated ≥ {excess:.1e}")


def folded_moments() -> Finding:
    """Σ, μ, σ² of the folded Gaussian against draws, in standard errors; A_opt = 1 with risk 0."""
    law = Folded(3)
    x, y = law(np.random.default_rng(8), 200_000)
    moments = law.moments()
    pairs = [(x[:, 0] * x[:, 1], moments.Sigma[0, 1]), (x[:, 0] * y, moments.mu[0]), (y**2, moments.sigma2)]
    scores = [abs(mean(v).value - float(exact)) / standard_error(mean(v)) for v, exact in pairs]
    best = min_risk(x[:100], y[:100], moments)
    off = float(np.abs(best - 1).max() + np.abs(moments.risk(best)).max())
    return Finding(max(scores), max(scores) < 4 and off < ROUNDING, f"A_opt off 1 and risk off 0 by {off:.1e}")


def folded_norm(evidence: Evidence) -> Finding:
    """The exact expected error of the least norm against draws, in standard errors; the two ratios within n, n²."""
    scores, within = [], True
    for entry in evidence["propE2"]:
        r, n = entry.result, entry.spec["n"]
        scores.append(abs(r["norm"] - r["norm_exact"]) / r["norm_error"])
        first, second = ratios_to_max(n)
        within &= first <= n and second <= n**2
    exact = [e.result["norm_exact"] for e in evidence["propE2"]]
    return Finding(max(scores), max(scores) < 4 and within, "exact " + ", ".join(f"{v:.4f}" for v in exact))


def folded_printed(evidence: Evidence) -> Finding:
    """The formula with + μ E(…) in standard errors from what is drawn."""
    scores = []
    for entry in evidence["propE2"]:
        n = entry.spec["n"]
        first, second = ratios_to_max(n)
        moments = Folded(n).moments()
        stated = 0.5 * (moments.sigma2 + second + float(moments.mu[0]) * first)
        scores.append(abs(stated - entry.result["norm"]) / entry.result["norm_error"])
    return Finding(max(scores), max(scores) < 4, "largest over n = 2, 3, 5")


def folded_infinite(evidence: Evidence) -> Finding:
    """E[error of the least sharpness; x_min > δ] by quadrature, by draws and by its asymptote: its slope in 1/δ."""
    slopes, scores = [], []
    for entry in evidence["propE2"]:
        c = entry.curves
        slopes.append(float(np.log(c["exact"][-1] / c["exact"][-2]) / np.log(c["delta"][-2] / c["delta"][-1])))
        scores += (np.abs(c["drawn"] - c["exact"]) / np.maximum(c["drawn_error"], 1e-12))[:5].tolist()
    holds = min(slopes) > 0.95 and max(scores) < 4.5
    return Finding(min(slopes), holds, f"draws within {max(scores):.1f} standard errors for δ ≥ 0.01")


def folded_log() -> Finding:
    """E[⟨1, x⟩/x_min; x_min > δ] grows by n(n − 1)2/π for every factor e in 1/δ."""
    ratios = []
    for n in (2, 3, 5):
        a, b = truncated_min(n, 1e-6)[0], truncated_min(n, 1e-7)[0]
        ratios.append(float((b - a) / np.log(10) / log_rate(n)))
    return Finding(min(ratios), max(abs(r - 1) for r in ratios) < 1e-3, "ratio to n(n − 1)2/π for n = 2, 3, 5")
