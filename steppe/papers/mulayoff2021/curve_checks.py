"""Checks of mulayoff2021 that compare step sizes: smoother with larger ones, monotone, thresholds, counts."""

from collections.abc import Callable
from typing import Any

from steppe.experiments._paper import Evidence, Finding
from steppe.papers.mulayoff2021.runs import merged
from steppe.papers.mulayoff2021.specs import FACTORS

# Factors that the supplement calls large, and moderate.
LARGE, MODERATE = (15.0, 10.0), (3.0, 1.0, 0.75)


def smoother(name: str) -> Callable[[Evidence], Finding]:
    def check(evidence: Evidence) -> Finding:
        from scipy.stats import spearmanr

        runs = merged(evidence["fig3"])
        lr, values = runs["lr"][runs["counted"]], runs[name][runs["counted"]]
        rank = float(spearmanr(lr, values).statistic)
        detail = f"{len(lr)} step sizes; from {values[0]:.4g} at η = {lr[0]:.3g} to {values[-1]:.4g} at {lr[-1]:.3g}"
        return Finding(rank, rank <= -0.9, detail)

    return check


def tripled(name: str) -> Callable[[Evidence], Finding]:
    """The ratio tripled/constant of a number, seed by seed."""

    def check(evidence: Evidence) -> Finding:
        pairs: dict[int, dict[float, float]] = {}
        for e in evidence["fig1"]:
            if bool(e.curves["counted"][0]):
                pairs.setdefault(e.spec["seed"], {})[e.spec["factor"]] = float(e.curves[name][0])
        ratios = sorted(pair[3.0] / pair[1.0] for pair in pairs.values() if len(pair) == 2)
        seeds = len({e.spec["seed"] for e in evidence["fig1"]})
        detail = f"{len(ratios)} of {seeds} seeds converged; ratios " + ", ".join(f"{r:.3g}" for r in ratios)
        return Finding(max(ratios), len(ratios) == seeds and max(ratios) < 1, detail)

    return check


def _of_factor(evidence: Evidence, factor: float) -> tuple[Any, Any]:
    runs = merged([e for e in evidence["s-fig3"] if e.spec["scale"] == factor])
    return runs["lr"][runs["counted"]], runs["sharpness"][runs["counted"]]


def monotone(evidence: Evidence) -> Finding:
    """The largest rise of λ_max from one step size to the next, relative."""
    import numpy as np

    rises = {}
    for factor in LARGE:
        _, sharpness = _of_factor(evidence, factor)
        rises[factor] = float(np.max(sharpness[1:] / sharpness[:-1] - 1, initial=-1.0))
    detail = "; ".join(f"× {f:g}: largest rise {r:+.2%}" for f, r in rises.items())
    return Finding(max(rises.values()), max(rises.values()) <= 0.01, detail)


def threshold(evidence: Evidence) -> Finding:
    """Spread of λ_max below the threshold 2/λ_flow, and distance from 2/η above it, λ_flow that of the smallest η."""
    import numpy as np

    worst, parts = 0.0, []
    for factor in MODERATE:
        lr, sharpness = _of_factor(evidence, factor)
        threshold = 2 / sharpness[0]
        # Within a tenth of the threshold either regime may rule.
        below, above = sharpness[lr < 0.9 * threshold], (sharpness * lr / 2)[lr > 1.1 * threshold]
        spread = float(np.ptp(below) / below.min()) if len(below) else float("inf")
        short = float(1 - above.min(initial=1.0))
        worst = max(worst, spread, short)
        parts.append(
            f"× {factor:g}: {len(below)} below η = {threshold:.3g} within {spread:.2%}, "
            f"{len(above)} above it at least {1 - short:.1%} of 2/η"
        )
    return Finding(worst, worst <= 0.05, "; ".join(parts))


def counts(evidence: Evidence) -> Finding:
    runs = merged(evidence["fig3"])
    total, counted, warming = len(runs["lr"]), int(runs["counted"].sum()), int(runs["warming"].sum())
    diverged, failed = int(runs["diverged"].sum()), int((~runs["reached"]).sum())
    detail = (
        f"of {total} step sizes {warming} converged during the warm-up (excluded; the paper: 2 of 200), {failed} did "
        f"not converge, {diverged} of them diverged (the paper: 15)"
    )
    return Finding(counted / total, counted + warming + failed == total and counted >= 0.75 * total, detail)


def init_counts(evidence: Evidence) -> Finding:
    parts, least = [], 1.0
    for factor in FACTORS:
        runs = merged([e for e in evidence["s-fig3"] if e.spec["scale"] == factor])
        counted, warming, diverged = (int(runs[name].sum()) for name in ("counted", "warming", "diverged"))
        failed = int((~runs["reached"]).sum())
        least = min(least, counted / len(runs["lr"]))
        parts.append(
            f"× {factor:g}: {counted} counted, {warming} in the warm-up, {failed} not converged ({diverged} diverged)"
        )
    return Finding(least, least >= 0.5, "; ".join(parts))
