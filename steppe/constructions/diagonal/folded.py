"""x = |g|, g ~ N(0, I_n), y = ⟨β, x⟩ + σε: the distribution of appendix E.1, with exact expectations for β = 1.

x_max and x_min of independent entries leave one integral over a half-normal density.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats
from steppe.constructions.diagonal.risk import Moments

_ROOT = float(np.sqrt(2 / np.pi))  # the density of |g| at 0, and its mean


@dataclass(frozen=True)
class Folded:
    """The distribution of (x, y); `moments` in closed form, samples from a generator.

    >>> Folded(3).moments().mu.round(4).tolist()                    # 1 + 2(n − 1)/π
    [2.2732, 2.2732, 2.2732]
    """

    n: int
    beta: tuple[float, ...] | None = None
    noise: float = 0.0

    def weights(self) -> Floats:
        return np.ones(self.n) if self.beta is None else np.asarray(self.beta, dtype=np.float64)

    def moments(self) -> Moments:
        """Σᵢⱼ = 2/π off the diagonal and 1 on it, μ = Σβ, σ² = βᵀΣβ + noise²."""
        Sigma = np.full((self.n, self.n), 2 / np.pi) + (1 - 2 / np.pi) * np.eye(self.n)
        mu = Sigma @ self.weights()
        return Moments(Sigma, mu, float(self.weights() @ mu) + self.noise**2)

    def __call__(self, rng: np.random.Generator, samples: int) -> tuple[Floats, Floats]:
        x = np.abs(rng.standard_normal((samples, self.n)))
        return x, x @ self.weights() + self.noise * rng.standard_normal(samples)


@cache
def ratios_to_max(n: int) -> tuple[float, float]:
    """(E⟨1, x⟩/x_max, E⟨1, x⟩²/x_max²), exactly: given x_max = m the other entries are independent below m.

    For n = 2 they are 1 + (2/π) ln 2 and (4/π)(1 + ln 2).

    >>> [round(v, 6) for v in ratios_to_max(2)]
    [1.441271, 2.155782]
    """
    from scipy.special import erf

    n = check.integer("n", n, minimum=1)

    def given(m: float) -> tuple[float, float]:
        below = erf(m / np.sqrt(2))
        first = _ROOT * -np.expm1(-(m**2) / 2) / below / m
        second = (1 - _ROOT * m * np.exp(-(m**2) / 2) / below) / m**2
        return _moments_of_sum(n, first, second)

    return _against(lambda m: n * erf(m / np.sqrt(2)) ** (n - 1), given, 0.0)


@cache
def truncated_min(n: int, delta: float) -> tuple[float, float]:
    """(E⟨1, x⟩/x_min, E⟨1, x⟩²/x_min²) over x_min > δ: both grow without bound as δ → 0, so neither exists.

    The first grows by n(n − 1)(2/π) for each factor e in 1/δ, the second like `square_rate(n)`/δ.
    """
    from scipy.special import erfc

    n = check.integer("n", n, minimum=2)
    delta = check.number("delta", delta, above=0.0)

    def given(m: float) -> tuple[float, float]:
        above = erfc(m / np.sqrt(2))
        first = _ROOT * np.exp(-(m**2) / 2) / above / m
        second = (1 + _ROOT * m * np.exp(-(m**2) / 2) / above) / m**2
        return _moments_of_sum(n, first, second)

    return _against(lambda m: n * erfc(m / np.sqrt(2)) ** (n - 1), given, delta)


def log_rate(n: int) -> float:
    """n(n − 1)(2/π): density n√(2/π) of x_min at 0 times the mean (n − 1)√(2/π) of the other entries' sum."""
    return n * (n - 1) * 2 / np.pi


def square_rate(n: int) -> float:
    """n√(2/π) E(sum of n − 1 entries)²: E[⟨1, x⟩²/x_min²; x_min > δ] ≈ this / δ."""
    return n * _ROOT * ((n - 1) + (n - 1) * (n - 2) * 2 / np.pi)


def min_norm_error(n: int) -> float:
    """½(σ² + E⟨1, x⟩²/x_max² − 2μ E⟨1, x⟩/x_max), exact for y = ⟨1, x⟩ (appendix E.1, corrected)."""
    first, second = ratios_to_max(n)
    moments = Folded(n).moments()
    return 0.5 * (moments.sigma2 + second - 2 * float(moments.mu[0]) * first)


def min_sharpness_error(n: int, delta: float) -> float:
    """The same for x_min over x_min > δ: grows like `square_rate(n)`/(2δ), hence the expectation is infinite."""
    from scipy.special import erfc

    first, second = truncated_min(n, delta)
    moments = Folded(n).moments()
    kept = float(erfc(delta / np.sqrt(2))) ** n
    return 0.5 * (moments.sigma2 * kept + second - 2 * float(moments.mu[0]) * first)


def _moments_of_sum(n: int, first: float, second: float) -> tuple[float, float]:
    """Mean of 1 + s and of (1 + s)², s a sum of n − 1 independent ratios with these two moments."""
    k = n - 1
    return 1 + k * first, 1 + 2 * k * first + k * second + k * (k - 1) * first**2


def _against(weight: Any, given: Any, low: float) -> tuple[float, float]:
    """∫ given(m) weight(m) √(2/π)e^{−m²/2} dm from `low` on, in ln m: the integrands are powers of m near 0."""
    from scipy.integrate import quad

    def integrand(t: float, part: int) -> float:
        m = float(np.exp(t))
        return float(given(m)[part] * weight(m) * _ROOT * np.exp(-(m**2) / 2) * m)

    # Below e⁻²⁵ the half-normal has no mass that a double sees; above e^2.3 ≈ 10 neither.
    first = np.log(low) if low > 0 else -25.0
    halves = [quad(integrand, first, 2.3, args=(part,), epsabs=1e-12, epsrel=1e-12, limit=400)[0] for part in (0, 1)]
    return float(halves[0]), float(halves[1])
