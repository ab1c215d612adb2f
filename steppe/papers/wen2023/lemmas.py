"""The technical lemmas of wen2023's appendix, on distributions and classes where both sides can be computed.

A.5 to A.10 and A.14 to A.18 are on concentration; A.20 to A.27, corollary A.1 and theorem A.3 are on complexity.

Lemmas A.1 to A.4 and A.11 are in section_3.py, A.12 in sections_4_and_5.py, A.13 and A.19 in misprints.py.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from steppe.experiments import Finding
from steppe.papers.wen2023._paper import PAPER
from steppe.papers.wen2023.explicit import cube as all_signs
from steppe.papers.wen2023.theory.complexity import linear, no_bias

_DIMENSIONS, _DELTA = (5, 10, 20, 40), 0.1


def _claim(
    number: int, statement: str, expected: str = "ratio ≤ 1", *, suffix: str = ""
) -> Callable[[Callable[[], Finding]], Callable[[], Finding]]:
    return PAPER.claim(f"lemmaA.{number}{suffix}", f"Lemma A.{number}", statement, expected)


# Concentration over all directions w: inputs with σ = 1 and covariance I.


def _samples(factor: float) -> Iterator[Any]:
    """Corners of the cube and Gaussians, n = factor · d log(d/δ) of each."""
    for d in _DIMENSIONS:
        n, rng = math.ceil(factor * d * math.log(d / _DELTA)), np.random.default_rng(d)
        yield rng.choice([-1.0, 1.0], size=(n, d))
        yield rng.normal(size=(n, d))


def _directions(x: Any) -> Any:
    """Unit vectors to search: random ones, the inputs, and ±eᵢ ± eⱼ, which have many corners on their boundary."""
    d = x.shape[1]
    i, j = np.triu_indices(d, 1)
    pairs = np.concatenate([np.eye(d)[i] + np.eye(d)[j], np.eye(d)[i] - np.eye(d)[j], np.eye(d)])
    w = np.concatenate([np.random.default_rng(d).normal(size=(2_000, d)), x, -x, pairs, -pairs])
    return w / np.linalg.norm(w, axis=1, keepdims=True)


def _within(found: Sequence[Any], low: float, high: float) -> Finding:
    """The constants must be right for every d."""
    least, most = float(min(v.min() for v in found)), float(max(v.max() for v in found))
    detail = f"from {least:.3f} to {most:.3f}, d = {_DIMENSIONS}, two distributions"
    return Finding(least, low <= least and most <= high, detail)


@_claim(5, "(1/n) Σ ‖xᵢ‖² 1[w·xᵢ > 0] is between C₁d and C₂d for all w.", "C₁ = 1/8, C₂ = 2 for every d")
def lemma_a5() -> Finding:
    found = [(_directions(x) @ x.T > 1e-12) @ np.sum(x**2, axis=1) / x.size for x in _samples(8.0)]
    return _within(found, 1 / 8, 2.0)


@_claim(6, "(1/n) Σ relu(w·xᵢ)² is between C₁ and C₂ for all unit w.", "C₁ = 1/16, C₂ = 2 for every d")
def lemma_a6() -> Finding:
    return _within([np.mean(np.maximum(_directions(x) @ x.T, 0) ** 2, axis=1) for x in _samples(8.0)], 1 / 16, 2.0)


def _share_outside(low: float, high: float, function: Callable[[Any], Any]) -> Finding:
    """How often the mean of `function(w·xᵢ)` leaves [low, high], over δ, where n = 24 log(4/δ)."""
    rng, worst = np.random.default_rng(0), 0.0
    for delta in (0.2, 0.05, 0.01):
        n = math.ceil(24 * math.log(4 / delta))
        for projections in (rng.normal(size=(20_000, n)), rng.choice([-1.0, 1.0], size=(20_000, n))):
            means = np.mean(function(projections), axis=1)
            worst = max(worst, float(np.mean((means < low) | (means > high))) / delta)
    return Finding(worst, worst <= 1, "largest frequency of failure over δ; δ = 0.2, 0.05, 0.01, n = 24 log(4/δ)")


@_claim(7, "(1/n) Σ |w·xᵢ|² is between 1/2 and 3/2 for n ≥ C log(2/δ).", "fails with probability ≤ δ")
def lemma_a7() -> Finding:
    return _share_outside(0.5, 1.5, np.square)


@_claim(8, "(1/n) Σ relu(w·xᵢ)² is between 1/8 and 3/2 for n ≥ C log(4/δ).", "fails with probability ≤ δ")
def lemma_a8() -> Finding:
    return _share_outside(0.125, 1.5, lambda h: np.maximum(h, 0) ** 2)


@_claim(9, "The unit sphere has an ε-covering of fewer than (2/ε + 1)^d points.", "ratio < 1")
def lemma_a9() -> Finding:
    """A maximal ε-separated set of 20,000 points of the sphere covers them: its size over (2/ε + 1)^d."""
    ratios = []
    for d, eps in ((2, 0.1), (2, 0.5), (3, 0.25), (3, 1.0), (4, 0.5)):
        points = np.random.default_rng(d).normal(size=(20_000, d))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        left, count = points, 0
        while len(left):
            left, count = left[np.linalg.norm(left - left[0], axis=1) > eps], count + 1
        ratios.append(count / (2 / eps + 1) ** d)
    return Finding(max(ratios), max(ratios) < 1, "d = 2, 3 and 4, ε from 0.1 to 1")


@_claim(10, "(1/n) Σ |w·xᵢ|² is between 1/4 and 2 for all unit w, n ≥ Cd log(d/δ).", "in [¼, 2]")
def lemma_a10() -> Finding:
    """The extreme eigenvalues of XᵀX/n: exact, and uniform over w."""
    return _within([np.linalg.eigvalsh(x.T @ x / len(x)) for x in _samples(4.0)], 1 / 4, 2.0)


# Tails of subgaussian and subexponential variables.


@_claim(14, "The square of a σ-subgaussian variable is (4√2σ², 4σ²)-subexponential.")
def lemma_a14() -> Finding:
    """log E exp(λ(X² − 1)) over 16λ², |λ| ≤ ¼, for X = ±1, Gaussian, and uniform on ±√3: σ = 1 each."""
    lam = np.linspace(-0.25, 0.25, 1001)
    lam = lam[lam != 0]
    gaussian = -lam - np.log1p(-2 * lam) / 2
    # Gauss-Legendre in 60 points integrates exp(λx²), |λx²| ≤ ¾, to rounding.
    nodes, weights = np.polynomial.legendre.leggauss(60)
    uniform = np.log(np.exp(lam[:, None] * (3 * nodes**2 - 1)) @ weights / 2)
    worst = float(np.max(np.stack([gaussian, uniform]) / (16 * lam**2)))
    return Finding(worst, worst <= 1, "largest exponent over σ²λ²/2 = 16λ²; X = ±1 has X² = 1")


@_claim(15, "Hoeffding: Pr(|mean| ≥ t) ≤ 2 exp(−nt²C).")
def lemma_a15() -> Finding:
    """Signs: Pr(|mean| ≥ t) of a binomial over 2 exp(−nt²/2)."""
    from scipy import stats

    ratios = [
        float(2 * stats.binom.sf((n + k) // 2 - 1, n, 0.5) / (2 * math.exp(-(k**2) / (2 * n))))
        for n in (1, 2, 7, 30, 200)
        for k in range(n % 2 or 2, n + 1, 2)
    ]
    return Finding(max(ratios), max(ratios) <= 1, "exact, n up to 200, C = 1/2σ²")


@_claim(16, "Bernstein: Pr(|mean − E| ≥ t) ≤ 2 exp(−n min(tC, t²C)).")
def lemma_a16() -> Finding:
    """Squares of Gaussians, (4√2, 4)-subexponential by lemma A.14: the tails of χ² over 2 exp(−n min(tC, t²C))."""
    from scipy import stats

    C, worst = 1 / 64, 0.0
    t = np.linspace(0.01, 10, 500)
    for n in (1, 3, 10, 100, 1000):
        tails = stats.chi2.sf(n * (1 + t), n) + stats.chi2.cdf(n * (1 - t), n)
        worst = max(worst, float(np.max(tails / (2 * np.exp(-n * np.minimum(t, t**2) * C)))))
    return Finding(worst, worst <= 1, "exact, n up to 1,000, t up to 10, C = 1/64")


@_claim(17, "Pr(‖x‖² ≥ 32σ²d + 8σ²t) ≤ e^{−t} and E‖x‖⁴ ≤ 2048σ⁴d².", "ratios ≤ 1")
def lemma_a17() -> Finding:
    return tails(1.0)


def tails(variance: float) -> Finding:
    """Gaussians of this variance against the bounds for σ = 1: Pr(‖x‖² ≥ 32d + 8t) over e^{−t}, and the fourth moment
    variance² d(d + 2) over 2048 d². They are 1-subgaussian up to variance 1."""
    from scipy import stats

    d, t = np.meshgrid([1, 2, 5, 30, 200], np.linspace(0, 50, 101))
    tail = float(np.max(stats.chi2.sf((32 * d + 8 * t) / variance, d) * np.exp(t)))
    moment = float(np.max(variance**2 * d * (d + 2) / (2048 * d**2)))
    return Finding(max(tail, moment), max(tail, moment) <= 1, "exact, d from 1 to 200; on the cube ‖x‖² = d")


@_claim(18, "E ‖x‖² 1[‖x‖ > c] ≤ dσ²/n for some c = O(√(d log(dn)) σ).", "c²/(d log dn) bounded, by 8")
def lemma_a18() -> Finding:
    """Gaussians: E ‖x‖² 1[‖x‖ > c] = d Pr(χ²_{d+2} > c²) is d/n at this c; c²/(d log dn), which must stay bounded."""
    from scipy import stats

    d, n = np.meshgrid([1, 2, 10, 100, 1000], np.logspace(1, 9, 9))
    ratios = stats.chi2.isf(1 / n, d + 2) / (d * np.log(d * n))
    # c² is about 2 log n for d = 1, and d for large d.
    return Finding(ratios.max(), ratios.max() <= 8, "exact, d from 1 to 1,000, n from 10 to 10⁹")


# Complexity R_S (Massart, Sauer, Vapnik and Chervonenkis, Srebro) of classes that are small enough to enumerate.

# (n, d) of sets of Gaussian points, of which all dichotomies by half-spaces are listed.
_SETS = ((2, 2), (3, 2), (6, 2), (8, 2), (4, 3), (6, 3), (7, 4))


def dichotomies(x: Any) -> Any:
    """All different vectors 1[w·xᵢ > 0] over w, one in each row; a linear program decides whether w exists."""
    from scipy.optimize import linprog

    n, d = x.shape
    rows = [
        s
        for s in all_signs(n)
        if linprog(np.zeros(d), A_ub=-s[:, None] * x, b_ub=-np.ones(n), bounds=(None, None), method="highs").status == 0
    ]
    return (np.array(rows) + 1) / 2


def _half_spaces() -> Any:
    for n, d in _SETS:
        yield n, d, dichotomies(np.random.default_rng(n).normal(size=(n, d)))


def complexity(values: Any) -> float:
    """R_S of a class from its values on S, one function in each row, over all 2ⁿ signs."""
    n = values.shape[1]
    return float(np.mean(np.max(all_signs(n) @ values.T, axis=1)) / n)


@_claim(20, "Massart: R_S ≤ √(2 log|A|/n).")
def lemma_a20() -> Finding:
    rng, ratios = np.random.default_rng(0), []
    for n, size in itertools.product((1, 4, 9), (2, 5, 30)):
        values = np.unique(rng.integers(0, 2, size=(size, n)), axis=0).astype(float)
        ratios.append(complexity(values) / math.sqrt(2 * math.log(max(len(values), 2)) / n))
    ratios += [complexity(values) / math.sqrt(2 * math.log(len(values)) / n) for n, _, values in _half_spaces()]
    return Finding(max(ratios), max(ratios) <= 1, "random classes and half-spaces, all signs")


@_claim(21, "Sauer: |A| ≤ Σ_{i ≤ VC} (n choose i).")
def lemma_a21() -> Finding:
    ratios = [len(values) / sum(math.comb(n, i) for i in range(d + 1)) for n, d, values in _half_spaces()]
    return Finding(max(ratios), max(ratios) <= 1, f"half-spaces, (n, d) = {_SETS}")


@PAPER.claim("corollaryA.1", "Corollary A.1", "R_S ≤ √(4 VC log n/n), n ≥ 2.", "ratio ≤ 1")
def corollary_a1() -> Finding:
    ratios = [complexity(values) / math.sqrt(4 * d * math.log(n) / n) for n, d, values in _half_spaces()]
    return Finding(max(ratios), max(ratios) <= 1, f"half-spaces, (n, d) = {_SETS}, all signs")


@_claim(
    22, "The VC dimension of half-spaces through 0 is d.",
    "d points are shattered; d + 1 points have a share < 1 of all dichotomies",
)  # fmt: skip
def lemma_a22() -> Finding:
    """d points are shattered, and no d + 1 are: the dichotomies of d + 1 points over 2^{d+1}, for 20 sets each."""
    shattered = all(len(dichotomies(np.eye(d))) == 2**d for d in (1, 2, 3, 4))
    rng = np.random.default_rng(0)
    share = max(len(dichotomies(rng.normal(size=(d + 1, d)))) / 2 ** (d + 1) for d in (1, 2, 3) for _ in range(20))
    return Finding(share, shattered and share < 1, "d = 1 to 4; the unit vectors are shattered")


@_claim(23, "sup |mean − E f| ≤ 2R_S + 3√(log(4/δ)/n).", "fails with probability ≤ δ")
def lemma_a23() -> Finding:
    """Half-planes through 0, x uniform on the circle: how often the largest deviation exceeds the bound, over δ."""
    n, delta, trials, rng = 400, 0.05, 100, np.random.default_rng(0)
    w = 2 * np.pi * (np.arange(720) + 0.5) / 720
    failed = 0
    for _ in range(trials):
        values = (np.cos(rng.uniform(0, 2 * np.pi, n)[None] - w[:, None]) > 0).astype(float)
        # Ten vectors of signs instead of all of them: R_S is within a few per cent.
        R = float(np.mean(np.max(values @ rng.choice([-1.0, 1.0], size=(n, 10)), axis=0)) / n)
        failed += bool(np.abs(values.mean(axis=1) - 0.5).max() > 2 * R + 3 * math.sqrt(math.log(4 / delta) / n))
    return Finding(failed / trials / delta, failed <= delta * trials, f"{trials} sets of {n} points, δ = {delta}")


@PAPER.claim(
    "thmA.3", "Theorem A.3", "At zero training loss the test loss is at most of order H log³n R² + b log(1/δ)/n.",
    "for linear maps a constant ≤ 1 suffices",
)  # fmt: skip
def theorem_a3() -> Finding:
    return needed_constant(1.0)


def needed_constant(norm: float) -> Finding:
    """Linear maps of at most this norm, squared loss: the largest test loss of a map with zero training loss, over its
    rate for norm 1.

    w* = e₁/2; w − w* is orthogonal to the inputs, the longest such w has this norm, x is uniform on the unit sphere.
    """
    d, delta, needed = 400, 0.05, []
    for n in (10, 30, 100, 300, 390):
        x = np.random.default_rng(n).normal(size=(n, d))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        basis = np.linalg.qr(x.T)[0]
        # In the null space the part of w* has length p: w* + v of norm r reaches ‖v‖ = p + √(p² + r² − 1/4).
        p = math.sqrt(0.25 - float(np.sum((basis.T @ np.eye(d)[0] / 2) ** 2)))
        loss = (p + math.sqrt(p**2 + norm**2 - 0.25)) ** 2 / d
        b = 4.0  # |f − y| ≤ 2 on the unit ball
        needed.append(loss / (2 * math.log(n) ** 3 * linear(x) ** 2 + b * math.log(1 / delta) / n))
    return Finding(max(needed), max(needed) <= 1, "the absolute constant that is needed, n from 10 to 390, d = 400")


@_claim(24, "The Rademacher complexity of nets of bounded path norm is at most 2CB/√n.", suffix="-rademacher")
def lemma_a24() -> Finding:
    worst = 0.0
    for seed in range(5):
        x = np.random.default_rng(seed).normal(size=(8, 2))
        angle = np.linspace(0, 2 * np.pi, 2000)
        features = np.maximum(np.stack([np.cos(angle), np.sin(angle)], axis=1) @ x.T, 0)
        exact = np.mean(np.max(np.abs(all_signs(8) @ features.T), axis=1)) / 8
        worst = max(worst, exact / no_bias(1.0, float(np.linalg.norm(x, axis=1).max()), 8))
    return Finding(worst, worst <= 1, "complexity over its bound 2CB/√n, all 2⁸ signs, 5 sets")


@_claim(25, "The Rademacher complexity of unit linear maps is at most √(Σ‖xᵢ‖²)/n.", suffix="-linear")
def lemma_a25() -> Finding:
    ratios = []
    for seed in range(5):
        x = np.random.default_rng(seed).normal(size=(8, 3))
        ratios.append(float(np.mean(np.linalg.norm(all_signs(8) @ x, axis=1)) / 8 / linear(x)))
    return Finding(max(ratios), max(ratios) <= 1, "E‖Σ σᵢxᵢ‖/n over √(Σ‖xᵢ‖²)/n, all 2⁸ signs, 5 sets")


@_claim(26, "|relu(x)² − relu(y)²| ≤ (|x| + |y|)|x − y|.")
def lemma_a26() -> Finding:
    x, y = np.random.default_rng(0).normal(size=(2, 100_000))
    left = np.abs(np.maximum(x, 0) ** 2 - np.maximum(y, 0) ** 2)
    worst = float((left / ((np.abs(x) + np.abs(y)) * np.abs(x - y))).max())
    return Finding(worst, worst <= 1 + 1e-12, "largest of 100,000 random ratios")


@_claim(27, "|Σ ± relu|² ≤ Σ relu² where a + d = b + c, with equality as stated.")
def lemma_a27() -> Finding:
    a, b, c = np.random.default_rng(0).normal(size=(3, 100_000))
    d = b + c - a
    r = [np.maximum(v, 0) for v in (a, b, c, d)]
    left, right = (r[0] + r[3] - r[1] - r[2]) ** 2, sum(v**2 for v in r)
    alone = sum((v > 0).astype(int) for v in (a, b, c, d)) <= 1
    equal = np.abs(left - right) <= 1e-12 * np.maximum(right, 1e-300)
    worst = float((left / np.where(right > 0, right, 1)).max())
    holds = worst <= 1 + 1e-12 and bool((equal == alone).all())
    return Finding(worst, holds, "equality exactly where at most one is positive")
