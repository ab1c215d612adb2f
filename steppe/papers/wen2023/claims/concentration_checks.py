"""Concentration as wen2023 uses it, lemmas A.5 to A.10 and A.14 to A.18, on distributions where both sides can be
computed: each check gives (number, whether it holds, detail)."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import stats

_DIMENSIONS, _DELTA = (5, 10, 20, 40), 0.1


def _samples(factor: float) -> Iterator[Any]:
    """Corners of the cube and Gaussians, σ = 1 and covariance I each, n = factor · d log(d/δ)."""
    for d in _DIMENSIONS:
        n, rng = math.ceil(factor * d * math.log(d / _DELTA)), np.random.default_rng(d)
        yield rng.choice([-1.0, 1.0], size=(n, d))
        yield rng.normal(size=(n, d))


def _directions(x: Any) -> Any:
    """Unit vectors to search: random ones, the inputs, and ±eᵢ ± eⱼ, which leave many corners on their boundary."""
    d = x.shape[1]
    i, j = np.triu_indices(d, 1)
    pairs = np.concatenate([np.eye(d)[i] + np.eye(d)[j], np.eye(d)[i] - np.eye(d)[j], np.eye(d)])
    w = np.concatenate([np.random.default_rng(d).normal(size=(2_000, d)), x, -x, pairs, -pairs])
    return w / np.linalg.norm(w, axis=1, keepdims=True)


def lemma_a5() -> tuple[float, bool, str]:
    """The extremes of (1/nd) Σ ‖xᵢ‖² 1[w·xᵢ > 0] over w."""
    found = [(_directions(x) @ x.T > 1e-12) @ np.sum(x**2, axis=1) / x.size for x in _samples(8.0)]
    return _within(found, 1 / 8, 2.0)


def lemma_a6() -> tuple[float, bool, str]:
    """The extremes of (1/n) Σ relu(w·xᵢ)² over unit w."""
    return _within([np.mean(np.maximum(_directions(x) @ x.T, 0) ** 2, axis=1) for x in _samples(8.0)], 1 / 16, 2.0)


def _within(found: Sequence[Any], low: float, high: float) -> tuple[float, bool, str]:
    """The constants must do for every d."""
    least, most = float(min(v.min() for v in found)), float(max(v.max() for v in found))
    return least, low <= least and most <= high, f"from {least:.3f} to {most:.3f}, d = {_DIMENSIONS}, two distributions"


def _share_outside(low: float, high: float, function: Callable[[Any], Any]) -> tuple[float, bool, str]:
    """How often the mean of `function(w·xᵢ)` leaves [low, high], over δ, where n = 24 log(4/δ)."""
    rng, worst = np.random.default_rng(0), 0.0
    for delta in (0.2, 0.05, 0.01):
        n = math.ceil(24 * math.log(4 / delta))
        for projections in (rng.normal(size=(20_000, n)), rng.choice([-1.0, 1.0], size=(20_000, n))):
            means = np.mean(function(projections), axis=1)
            worst = max(worst, float(np.mean((means < low) | (means > high))) / delta)
    return worst, worst <= 1, "largest frequency of failure over δ; δ = 0.2, 0.05, 0.01, n = 24 log(4/δ)"


def lemma_a7() -> tuple[float, bool, str]:
    return _share_outside(0.5, 1.5, np.square)


def lemma_a8() -> tuple[float, bool, str]:
    return _share_outside(0.125, 1.5, lambda h: np.maximum(h, 0) ** 2)


def lemma_a9() -> tuple[float, bool, str]:
    """The size of a maximal ε-separated set of 20,000 points of the sphere, which covers them, over (2/ε + 1)^d."""
    ratios = []
    for d, eps in ((2, 0.1), (2, 0.5), (3, 0.25), (3, 1.0), (4, 0.5)):
        points = np.random.default_rng(d).normal(size=(20_000, d))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        left, count = points, 0
        while len(left):
            left, count = left[np.linalg.norm(left - left[0], axis=1) > eps], count + 1
        ratios.append(count / (2 / eps + 1) ** d)
    return max(ratios), max(ratios) < 1, "d = 2, 3 and 4, ε from 0.1 to 1"


def lemma_a10() -> tuple[float, bool, str]:
    """The extreme eigenvalues of XᵀX/n: uniform over w, and exact."""
    return _within([np.linalg.eigvalsh(x.T @ x / len(x)) for x in _samples(4.0)], 1 / 4, 2.0)


def lemma_a14() -> tuple[float, bool, str]:
    """log E exp(λ(X² − 1)) over 16λ², |λ| ≤ ¼, for X = ±1, Gaussian, and uniform on ±√3: σ = 1 each."""
    lam = np.linspace(-0.25, 0.25, 1001)
    lam = lam[lam != 0]
    gaussian = -lam - np.log1p(-2 * lam) / 2
    # Gauss-Legendre in 60 points integrates exp(λx²), |λx²| ≤ ¾, to rounding.
    nodes, weights = np.polynomial.legendre.leggauss(60)
    uniform = np.log(np.exp(lam[:, None] * (3 * nodes**2 - 1)) @ weights / 2)
    worst = float(np.max(np.stack([gaussian, uniform]) / (16 * lam**2)))
    return worst, worst <= 1, "largest exponent over σ²λ²/2 = 16λ²; X = ±1 has X² = 1"


def lemma_a15() -> tuple[float, bool, str]:
    """Signs: Pr(|mean| ≥ t) of a binomial over 2 exp(−nt²/2)."""
    ratios = [
        float(2 * stats.binom.sf((n + k) // 2 - 1, n, 0.5) / (2 * math.exp(-(k**2) / (2 * n))))
        for n in (1, 2, 7, 30, 200)
        for k in range(n % 2 or 2, n + 1, 2)
    ]
    return max(ratios), max(ratios) <= 1, "exact, n up to 200, C = 1/2σ²"


def lemma_a16() -> tuple[float, bool, str]:
    """Squares of Gaussians, (4√2, 4)-subexponential by lemma A.14: the tails of χ² over 2 exp(−n min(tC, t²C))."""
    C, worst = 1 / 64, 0.0
    t = np.linspace(0.01, 10, 500)
    for n in (1, 3, 10, 100, 1000):
        tails = stats.chi2.sf(n * (1 + t), n) + stats.chi2.cdf(n * (1 - t), n)
        worst = max(worst, float(np.max(tails / (2 * np.exp(-n * np.minimum(t, t**2) * C)))))
    return worst, worst <= 1, "exact, n up to 1,000, t up to 10, C = 1/64"


def lemma_a17() -> tuple[float, bool, str]:
    """Gaussians, σ = 1: Pr(‖x‖² ≥ 32d + 8t) over e^{−t}, and E‖x‖⁴ = d(d + 2) over 2048 d²."""
    d, t = np.meshgrid([1, 2, 5, 30, 200], np.linspace(0, 50, 101))
    tail = float(np.max(stats.chi2.sf(32 * d + 8 * t, d) * np.exp(t)))
    moment = float(np.max(d * (d + 2) / (2048 * d**2)))
    return max(tail, moment), max(tail, moment) <= 1, "exact, d from 1 to 200; on the cube ‖x‖² = d"


def lemma_a18() -> tuple[float, bool, str]:
    """Gaussians: E ‖x‖² 1[‖x‖ > c] = d Pr(χ²_{d+2} > c²) is d/n at this c; c²/(d log dn), which must stay bounded."""
    d, n = np.meshgrid([1, 2, 10, 100, 1000], np.logspace(1, 9, 9))
    ratios = stats.chi2.isf(1 / n, d + 2) / (d * np.log(d * n))
    # c² is about 2 log n for d = 1, and d for large d.
    return float(ratios.max()), bool(ratios.max() <= 8), "exact, d from 1 to 1,000, n from 10 to 10⁹"
