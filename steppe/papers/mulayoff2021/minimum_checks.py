"""Checks of mulayoff2021 that look at minima one by one: stability, bounds, certificates, kinks."""

from collections.abc import Callable, Iterator
from typing import Any

from steppe.experiments._paper import Evidence, Finding
from steppe.papers.mulayoff2021 import settled
from steppe.papers.mulayoff2021.runs import network

ALL = ("fig1", "fig3", "s-fig3")


def _runs(evidence: Evidence) -> Iterator[tuple[Any, int, float]]:
    """(entry, number, step size at its end) of every run that counts."""
    for id in ALL:
        for e in evidence[id]:
            curves = e.curves
            factor = e.spec["factor"] if e.spec["below"] > 0 else 1.0
            for k, (lr, counted) in enumerate(zip(curves["lr"], curves["counted"], strict=True)):
                if counted:
                    yield e, k, float(lr) * factor


def _column(evidence: Evidence, name: str) -> Any:
    """A column in the order of `_runs`."""
    import numpy as np

    return np.concatenate([e.curves[name][e.curves["counted"]] for id in ALL for e in evidence[id]])


def limit(evidence: Evidence) -> Finding:
    """Runs above 2/η where they stopped are taken on until they settle, and must have a mode that is not above it.

    Lemma 1 is about minima where the loss is twice differentiable. A run stopped at 1e-8 need not be at a minimum yet,
    and most minima have kinks, where the Hessian jumps between modes from step to step.
    """
    import numpy as np

    runs = list(_runs(evidence))
    ratios = _column(evidence, "sharpness") * np.array([lr for *_, lr in runs]) / 2
    above = [run for run, ratio in zip(runs, ratios, strict=True) if ratio > 1]
    after = [settled.least_ratio(*run) for run in above]
    kinked = sum(has_kinks for _, has_kinks in after)
    largest = max([ratio for ratio, _ in after], default=float(ratios.max()))
    detail = (
        f"{len(ratios)} runs, median {np.median(ratios):.4g}. Where they stop, at loss 1e-8, {len(above)} are above 1, "
        f"{ratios.max():.5g} at most; settled, {kinked} of these have kinks, the least mode is {largest:.5g} at most"
    )
    return Finding(largest, largest <= 1, detail)


def bound(evidence: Evidence) -> Finding:
    import numpy as np

    rates = np.array([lr for *_, lr in _runs(evidence)])
    ratios = _column(evidence, "weighted") / (1 / rates - 0.5)
    return Finding(ratios.max(), bool(ratios.max() <= 1), f"{len(ratios)} runs, median {np.median(ratios):.4g}")


def chain(evidence: Evidence) -> Finding:
    slack = _column(evidence, "slack")
    # Sums of a thousand terms of float64.
    return Finding(slack.min(), bool(slack.min() >= 1 - 1e-10), f"{len(slack)} runs, six links each")


def certified(name: str) -> Callable[[Evidence], Finding]:
    def check(evidence: Evidence) -> Finding:
        gaps = _column(evidence, name)
        return Finding(gaps.max(), bool(gaps.max() <= 1e-6), f"{len(gaps)} runs, relative gap")

    return check


def between(evidence: Evidence) -> Finding:
    """1 + 2∫|f″|g ≤ flattest ≤ λ_max: the smallest of the two ratios."""
    import numpy as np

    above = _column(evidence, "sharpness") / _column(evidence, "flattest")
    below = _column(evidence, "flattest") / _column(evidence, "function")
    least = min(above.min(), below.min())
    detail = (
        f"λ_max is {np.median(above):.3g} (median; {above.max():.3g} at most) times the flattest implementation's, "
        f"and that {np.median(below):.3g} times the bound"
    )
    return Finding(float(least), bool(least >= 1 - 1e-9), detail)


def descent(evidence: Evidence) -> Finding:
    """Gradient descent on β, on a few runs: how far above the certified minimum it ends."""
    from steppe.papers.mulayoff2021.theory.flattest import descent_on_beta

    excesses = []
    for e in evidence["fig3"]:
        counted = [k for k, c in enumerate(e.curves["counted"]) if c]
        for k in counted[:: max(1, len(counted) - 1)][:2]:
            arrays = e.params
            least, _ = descent_on_beta(network(arrays, k), arrays["x"][:, None], steps=2_000)
            excesses.append(least / float(e.curves["flattest"][k]) - 1)
    detail = f"{len(excesses)} runs, 2,000 steps each: from {min(excesses):.1e} to {max(excesses):.1e} above"
    return Finding(max(excesses), min(excesses) >= -1e-9 and max(excesses) <= 1e-2, detail)


def kinks(evidence: Evidence) -> Finding:
    """λ_max^upper over the bound of Theorem 2 (S75, corrected); a run above it where it stopped is taken on."""
    import numpy as np

    ratios = _column(evidence, "upper_sharpness_most") / _column(evidence, "theorem_2")
    runs = zip(_runs(evidence), ratios, strict=True)
    after = [settled.bound_ratio(*run) if ratio > 1 else float(ratio) for run, ratio in runs]
    kinks, excursion = _column(evidence, "kinks"), _column(evidence, "excursion")
    detail = (
        f"{np.mean(kinks > 0):.0%} of {len(kinks)} runs end with neurons on a training point (median "
        f"{np.median(kinks):.0f} of 80); {int((ratios > 1).sum())} above 1 where they stop, by {ratios.max() - 1:.0e}; "
        f"simulated nearby, {np.mean(excursion <= 1 + 1e-9):.0%} never leave the ball, the worst reaches "
        f"{excursion.max():.3g} radii"
    )
    return Finding(max(after), max(after) <= 1, detail)
