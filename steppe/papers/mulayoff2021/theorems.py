"""The theorems of mulayoff2021, measured on the minima of all figures; and its formulas, on random cases."""

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from steppe.experiments import Finding
from steppe.papers.mulayoff2021.descent import CAP, PAPER, network
from steppe.papers.mulayoff2021.figures import fig1, fig3, s_fig3

ALL = (fig1, fig3, s_fig3)
Runs = Sequence[Any]


def each(figures: Sequence[Runs]) -> Iterator[tuple[Any, int, float]]:
    """(run, row, step size at its end) of every minimum that counts."""
    for runs in figures:
        for run in runs:
            curves = run.curves
            factor = run.spec["factor"] if run.spec["below"] > 0 else 1.0
            for k, (lr, counted) in enumerate(zip(curves["lr"], curves["counted"], strict=True)):
                if counted:
                    yield run, k, float(lr) * factor


def column(figures: Sequence[Runs], name: str) -> Any:
    """A column, in the order of `each`."""
    return np.concatenate([run.curves[name][run.curves["counted"]] for runs in figures for run in runs])


# A run that stops above a limit may not be at a minimum yet. It goes on with its own step size until the residuals are
# 1e-10: this gives slow instabilities time to show, and kinks are met to 1e-6.
SETTLED_LOSS, SETTLED_KINK, SETTLED_STEPS = 1e-20, 1e-6, 2_000_000


def settled_modes(run: Any, k: int, lr: float) -> Any:
    """The modes at the minimum where row k settles; None if it does not settle."""
    from steppe.dynamics import minima
    from steppe.papers.mulayoff2021.theory import modes

    arrays = run.params
    done = minima(arrays["x"], arrays["y"], network(arrays, k), [lr], loss=SETTLED_LOSS, max_steps=SETTLED_STEPS)
    if done.outcome != ("reached",):
        return None
    return modes(done.params(0), arrays["x"][:, None], rtol=SETTLED_KINK)


def settled_limit(run: Any, k: int, lr: float) -> tuple[float, bool]:
    """(least λ_max η/2 of all modes, whether there are kinks) once settled; infinite where it does not settle."""
    from steppe.papers.mulayoff2021.theory import lower_sharpness

    modes = settled_modes(run, k, lr)
    if modes is None:
        return float("inf"), False
    return lower_sharpness(modes, cap=CAP).upper * lr / 2, len(modes.kinks) > 0


def settled_bound(run: Any, k: int, lr: float) -> float:
    """λ_max^upper over the bound of Theorem 2 once settled; infinite where it does not settle."""
    from steppe.papers.mulayoff2021.theory import theorem_2, upper_sharpness

    modes = settled_modes(run, k, lr)
    if modes is None:
        return float("inf")
    bound = theorem_2(lr, modes.largest_entry(), modes.crowd, len(modes.x))
    return upper_sharpness(modes, cap=CAP).upper / bound


@PAPER.claim(
    "lemma1-limit", "Lemma 1, Figure 3",
    "GD settles only at minima with λ_max ≤ 2/η; at a minimum with kinks this holds in one of its modes.",
    "λ_max η/2 ≤ 1 where a run stops, or in a mode once it has settled", needs=ALL,
)  # fmt: skip
def sharpness_below_limit(*figures: Runs) -> Finding:
    """A run that stops above 2/η goes on until it settles, and must then have a mode that is not above 2/η.

    Lemma 1 is about minima where the loss is twice differentiable. A run that stops at a loss of 1e-8 may not be at a
    minimum yet, and most minima have kinks, where the Hessian jumps between modes from step to step.
    """
    minima = list(each(figures))
    ratios = column(figures, "sharpness") * np.array([lr for *_, lr in minima]) / 2
    above = [minimum for minimum, ratio in zip(minima, ratios, strict=True) if ratio > 1]
    after = [settled_limit(*minimum) for minimum in above]
    kinked = sum(has_kinks for _, has_kinks in after)
    largest = max([ratio for ratio, _ in after], default=float(ratios.max()))
    detail = (
        f"{len(ratios)} runs, median {np.median(ratios):.4g}. Where they stop, at loss 1e-8, {len(above)} are above 1, "
        f"{ratios.max():.5g} at most; settled, {kinked} of these have kinks, the least mode is {largest:.5g} at most"
    )
    return Finding(largest, largest <= 1, detail)


@PAPER.claim(
    "thm1-bound", "Theorem 1", "∫|f″| g ≤ 1/η − ½ for every function that GD converges to.", "ratio ≤ 1 in every run",
    needs=ALL,
)  # fmt: skip
def function_below_bound(*figures: Runs) -> Finding:
    from steppe.papers.mulayoff2021.theory import stability_bound

    ratios = column(figures, "weighted") / stability_bound(np.array([lr for *_, lr in each(figures)]))
    return Finding(ratios.max(), bool(ratios.max() <= 1), f"{len(ratios)} runs, median {np.median(ratios):.4g}")


@PAPER.claim(
    "lemma4-chain", "Lemma 4, (S33) to (S42)", "λ_max ≥ ‖Φ1‖²/n² ≥ … ≥ 1 + 2 Σ|w₁w₂| g(τ) ≥ 1 + 2 ∫|f″| g.",
    "each link ≥ the next, in every run", needs=ALL,
)  # fmt: skip
def chain_holds(*figures: Runs) -> Finding:
    slack = column(figures, "slack")
    # The rounding of sums of a thousand terms.
    return Finding(slack.min(), bool(slack.min() >= 1 - 1e-10), f"{len(slack)} runs, six links each")


def certified(name: str, *figures: Runs) -> Finding:
    gaps = column(figures, name)
    return Finding(gaps.max(), gaps.max() <= 1e-6, f"{len(gaps)} runs, relative gap")


PAPER.claim(
    "flattest-certified", "Supplement XI, (S82) to (S86)",
    "The flattest implementation is found and certified for every run.", "relative gap ≤ 1e-6", needs=ALL,
)(partial(certified, "flattest_gap"))  # fmt: skip
PAPER.claim(
    "flattest-s88", "Supplement XI, (S88)",
    "The top eigenvector alone certifies the flattest implementation in all simulations.",
    "relative gap ≤ 1e-6", needs=ALL,
)(partial(certified, "top_gap"))  # fmt: skip


@PAPER.claim(
    "flattest-between", "Lemma 4, Figure 3",
    "GD ends at sharper minima than the flattest implementation, which is above 1 + 2∫|f″|g: three separate curves.",
    "medians of both ratios ≥ 1.25", needs=(fig3,),
)  # fmt: skip
def flattest_in_between(*figures: Runs) -> Finding:
    """The smaller of the two medians."""
    above = column(figures, "sharpness") / column(figures, "flattest")
    below = column(figures, "flattest") / column(figures, "function")
    least = min(np.median(above), np.median(below))
    detail = (
        f"λ_max is {np.median(above):.3g} (median; {above.min():.3g} to {above.max():.3g}) times the flattest "
        f"implementation's, and that {np.median(below):.3g} ({below.min():.3g} to {below.max():.3g}) times the bound"
    )
    return Finding(float(least), bool(least >= 1.25), detail)


@PAPER.claim(
    "flattest-gd", "Supplement XI", "Gradient descent on the scales β finds the flattest implementation.",
    "at most 1% above the certified minimum, never below", needs=(fig3,),
)  # fmt: skip
def descent_finds_flattest(runs: Runs) -> Finding:
    """Gradient descent on β for a few minima: how far above the certified minimum it ends."""
    from steppe.papers.mulayoff2021.theory import descent_on_beta

    excesses = []
    for run in runs:
        counted = np.flatnonzero(run.curves["counted"]).tolist()
        for k in counted[:: max(1, len(counted) - 1)][:2]:
            arrays = run.params
            least, _ = descent_on_beta(network(arrays, k), arrays["x"][:, None], steps=2_000)
            excesses.append(least / float(run.curves["flattest"][k]) - 1)
    detail = f"{len(excesses)} runs, 2,000 steps each: from {min(excesses):.1e} to {max(excesses):.1e} above"
    return Finding(max(excesses), min(excesses) >= -1e-9 and max(excesses) <= 1e-2, detail)


@PAPER.claim(
    "thm2-bound", "Theorem 2, (S74)", "At minima with kinks λ_max^upper is at most the bound of Theorem 2.",
    "ratio ≤ 1 in every run, once settled if it stops above", needs=ALL,
)  # fmt: skip
def kinks_below_bound(*figures: Runs) -> Finding:
    """λ_max^upper over the bound of Theorem 2 (S75, corrected). A run above it where it stopped goes on."""
    ratios = column(figures, "upper_sharpness_most") / column(figures, "theorem_2")
    minima = zip(each(figures), ratios, strict=True)
    after = [settled_bound(*minimum) if ratio > 1 else float(ratio) for minimum, ratio in minima]
    kinks, excursion = column(figures, "kinks"), column(figures, "excursion")
    detail = (
        f"{np.mean(kinks > 0):.0%} of {len(kinks)} runs end with neurons on a training point (median "
        f"{np.median(kinks):.0f} of 80); {int((ratios > 1).sum())} above 1 where they stop, by {ratios.max() - 1:.0e}; "
        f"simulated nearby, {np.mean(excursion <= 1 + 1e-9):.0%} never leave the ball, the worst reaches "
        f"{excursion.max():.3g} radii"
    )
    return Finding(max(after), max(after) <= 1, detail)


def mean_distance(tangents: Any, lr: float, *, batch: int, steps: int = 40, draws: int = 400) -> float:
    """E‖θ − θ*‖ after linear SGD from a unit distance along the top eigenvector of ∇²L, to the power 1/steps."""
    n = len(tangents)
    top = np.linalg.svd(tangents, full_matrices=False)[2][0]
    rng, away = np.random.default_rng(0), np.tile(top, (draws, 1))
    for _ in range(steps):
        chosen = rng.permuted(np.tile(np.arange(n), (draws, 1)), axis=1)[:, :batch]
        rows = tangents[chosen]
        errors = np.einsum("kbp,kp->kb", rows, away)
        away = away - lr / batch * np.einsum("kb,kbp->kp", errors, rows)
    return float(np.mean(np.linalg.norm(away, axis=1)) ** (1 / steps))


@PAPER.claim(
    "lemma1-sgd", "Lemma 1",
    "E‖θ − θ*‖ of SGD, simulated near a minimum, grows just beyond 2/λ_max and shrinks where E‖u‖² is stable.",
    "per step ≥ 1.05 at 1.05 · 2/λ_max, < 1 at 0.9 of the stable η, for every batch size", needs=(fig3,),
)  # fmt: skip
def sgd_unstable_beyond_limit(runs: Runs) -> Finding:
    """The smallest growth just beyond 2/λ_max, over batch sizes and three minima; E‖·‖ ≥ ‖E·‖ would make it 1.1."""
    from steppe.papers.mulayoff2021 import theory

    run, grows, shrinks = runs[0], [], []
    stable: dict[int, list[float]] = {}
    counted = np.flatnonzero(run.curves["counted"]).tolist()
    for k in counted[:: max(1, len(counted) // 3)][:3]:
        modes = theory.modes(network(run.params, k), run.params["x"][:, None])
        tangents = modes.tangents(modes.active)
        K, limit = tangents @ tangents.T, 2 / modes.sharpness(modes.active)
        for batch in (1, 2, 5, len(K)):
            largest = theory.largest_stable_lr(K, batch_size=batch, rtol=1e-3)
            stable.setdefault(batch, []).append(largest / limit)
            grows.append(mean_distance(tangents, 1.05 * limit, batch=batch))
            shrinks.append(mean_distance(tangents, 0.9 * largest, batch=batch))
    ranges = [f"batch {b}: {min(v):.3f} to {max(v):.3f}" for b, v in stable.items()]
    detail = f"at 0.9 of the stable η {max(shrinks):.4f} at most; stable η over 2/λ_max: " + ", ".join(ranges)
    return Finding(min(grows), min(grows) >= 1.05 and max(shrinks) < 1, detail)


# Formulas, as printed and corrected.


_SOLVES = "The bound, multiplied out, solves λ = 2/η + 2√3 C √λ √(p/n)"


@PAPER.misprint(
    "s75", "(S75)",
    printed=(f"{_SOLVES}.", "relative residual 0"),
    corrected=(f"{_SOLVES} if its last two terms are doubled.", "relative residual 0"),
)  # fmt: skip
def root_residual(as_printed: bool) -> Finding:
    """How far (S75) is from solving the equation whose root it should be, over a grid of η, C, p and n."""
    from steppe.papers.mulayoff2021.theory import theorem_2, theorem_2_as_printed

    bound, worst = theorem_2_as_printed if as_printed else theorem_2, 0.0
    for lr, C, p, n in itertools.product((1e-3, 0.1, 1.0), (1.0, 5.0), (1, 4), (4, 10)):
        value = bound(lr, C, p, n)
        equation = 2 / lr + 2 * math.sqrt(3 * p / n) * C * math.sqrt(value)
        worst = max(worst, abs(value / equation - 1))
    return Finding(worst, worst <= 1e-12, "24 cases; the largest relative residual")


@PAPER.misprint(
    "f2", "Appendix VI, below (S41)",
    printed=("f″ = Σ w₁ᵢw₂ᵢ δ(x − τᵢ).", "relative error of the slope jumps of random nets 0"),
    corrected=("f″ = Σ |w₁ᵢ|w₂ᵢ δ(x − τᵢ).", "relative error of the slope jumps of random nets 0"),
)  # fmt: skip
def jump_error(as_printed: bool) -> Finding:
    """Slope jumps of random nets, measured on the function, against the weights of the deltas."""
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(20):
        w1, b1, w2 = rng.normal(size=(3, 6))
        weights = w1 * w2 if as_printed else np.abs(w1) * w2
        knots = -b1 / w1
        apart = np.min(np.abs(knots[:, None] - knots[None]) + np.diag(np.full(6, np.inf)))
        h = 0.25 * apart
        left, middle, right = (np.maximum(np.outer(knots + shift, w1) + b1, 0.0) @ w2 for shift in (-h, 0.0, h))
        # Neighbours are at least 4h away: between left and right f bends only at the knot itself.
        jumps = (right - 2 * middle + left) / h
        worst = max(worst, float(np.max(np.abs(jumps - weights) / np.abs(weights))))
    # The rounding of f, about 1e-16, divided by h, which may be 1e-3.
    return Finding(worst, worst <= 1e-8, "20 nets of 6 neurons; the largest relative error")
