"""The risk of the diagonal network, and the expected risk of algorithms that see one example (Proposition E.2)."""

from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from steppe import check
from steppe.estimate import Estimate
from steppe.training_set import Floats

_MOST_SUPPORTS = 8
_ROOT = float(np.sqrt(2 / np.pi))  # the density of |g| at 0, and the mean of |g|


# The risk R(w) = E ½(⟨w², x⟩ − y)² in closed form (Lemma E.1, Eq. 21).


@dataclass(frozen=True, eq=False)
class Moments:
    """Σ = E xxᵀ, μ = E yx, σ² = E y²: the risk depends on the distribution through these alone."""

    Sigma: Floats
    mu: Floats
    sigma2: float

    def __post_init__(self) -> None:
        d = len(self.mu)
        if np.shape(self.Sigma) != (d, d) or not np.allclose(self.Sigma, np.transpose(self.Sigma)):
            check.refuse("Sigma", f"symmetric of shape ({d}, {d})", np.shape(self.Sigma), "Pass E xxᵀ.")
        if np.linalg.eigvalsh(self.Sigma)[0] <= 0:
            check.refuse("Sigma", "positive definite", np.linalg.eigvalsh(self.Sigma)[0], "Drop dependent coordinates.")

    def risk(self, u: Any) -> Floats:
        """½(uᵀΣu − 2μᵀu + σ²) at u = w² of shape (..., d) (Eq. 21)."""
        u = np.asarray(u, dtype=np.float64)
        return 0.5 * (np.sum((u @ self.Sigma) * u, axis=-1) - 2 * u @ self.mu + self.sigma2)


def gaussian(d: int) -> Moments:
    """x ~ N(0, I), y = ⟨1, x⟩ + ε: Σ = I, μ = 1, σ² = d + 1 (Lemma E.1)."""
    return Moments(np.eye(d), np.ones(d), d + 1.0)


def risk(w: Any) -> Floats:
    """½‖w‖₄⁴ − ‖w‖² + ½(d + 1) (Lemma E.1).

    >>> float(risk([1.0, 1.0]))                                     # the noise remains, ½ E ε²
    0.5
    """
    u = np.asarray(w, dtype=np.float64) ** 2
    return gaussian(u.shape[-1]).risk(u)


def mean(values: Any) -> Estimate:
    """The mean of independent draws with its 99% interval.

    >>> mean([1.0, 1.0, 1.0]).value
    1.0
    """
    values = np.asarray(values, dtype=np.float64)
    centre, error = float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
    return Estimate(centre, centre - 2.576 * error, centre + 2.576 * error, 0.99)


def standard_error(estimate: Estimate) -> float:
    return (estimate.upper - estimate.lower) / (2 * 2.576)


# Three idealised algorithms that see one example: least norm, least sharpness, least risk (section 3).


def min_norm(x: Any, y: Any) -> Floats:
    """u = (y/x_max) e_{k_max}: the limit of gradient descent from a small start with a small rate.

    >>> min_norm([1.0, 0.5], 2.0).tolist()
    [2.0, 0.0]
    """
    x, y = _examples(x, y)
    return _single(x, y, np.argmax(x, axis=-1))


def min_sharpness(x: Any, y: Any) -> Floats:
    """u = (y/x_min) e_{k_min}: the limit of gradient descent with a very large rate, if it converged.

    >>> min_sharpness([1.0, 0.5], 2.0).tolist()
    [0.0, 4.0]
    """
    x, y = _examples(x, y)
    return _single(x, y, np.argmin(x, axis=-1))


def min_risk(x: Any, y: Any, moments: Moments) -> Floats:
    """The u ≥ 0 of least risk with ⟨x, u⟩ = y: `unconstrained` (Prop. E.2 iii) if that is ≥ 0, else a point with zeros.

    It solves a convex quadratic program on every support.

    >>> from steppe.papers.conflicting_biases.theory.risks import gaussian
    >>> min_risk([1.0, 0.5], 0.2, gaussian(2)).tolist()             # unconstrained it would be (−0.04, 0.48)
    [0.0, 0.4]
    """
    x, y = _examples(x, y)
    d = x.shape[-1]
    if d > _MOST_SUPPORTS:
        check.refuse("x", f"of at most {_MOST_SUPPORTS} entries", d, "All 2^d supports are tried.")
    best = np.full(x.shape, np.nan)
    least = np.full(y.shape, np.inf)
    for size in range(1, d + 1):
        for A in map(list, combinations(range(d), size)):
            u = np.zeros(x.shape)
            part = Moments(moments.Sigma[np.ix_(A, A)], moments.mu[A], moments.sigma2)
            u[..., A] = unconstrained(x[..., A], y, part)
            risk = np.where((u >= 0).all(axis=-1), moments.risk(u), np.inf)
            best = np.where((risk < least)[..., None], u, best)
            least = np.minimum(risk, least)
    return best


def unconstrained(x: Any, y: Any, moments: Moments) -> Floats:
    """Σ^{−½}(P⊥ μ_Σ + y x_Σ/‖x_Σ‖²) = Σ⁻¹(μ − κx), the minimum over all u ∈ ℝᵈ: Prop. E.2 (iii) as printed.

    It ignores the constraint u = w² ≥ 0, so w need not exist; see `min_risk`.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    inverse = np.linalg.inv(moments.Sigma)
    whitened = x @ inverse
    kappa = (whitened @ moments.mu - y) / np.sum(whitened * x, axis=-1)
    return inverse @ moments.mu - kappa[..., None] * whitened


def unconstrained_risk(x: Any, y: Any, moments: Moments) -> Floats:
    """½(σ² + y²/‖x_Σ‖² − 2y⟨μ_Σ, x_Σ⟩/‖x_Σ‖² − μ_Σᵀ P⊥ μ_Σ), the risk that Prop. E.2 (iii) states."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    inverse = np.linalg.inv(moments.Sigma)
    length, along = np.sum((x @ inverse) * x, axis=-1), x @ inverse @ moments.mu
    across = moments.mu @ inverse @ moments.mu - along**2 / length
    return 0.5 * (moments.sigma2 + y**2 / length - 2 * y * along / length - across)


def single_entry_risk(x: Any, y: Any, k: Any, moments: Moments) -> Floats:
    """½(σ² + Σ_kk y²/x_k² − 2 μ_k y/x_k), the risk of u = (y/x_k) e_k: Prop. E.2 (i), (ii), corrected."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    weight = y / np.take_along_axis(x, np.asarray(k)[..., None], axis=-1)[..., 0]
    return 0.5 * (moments.sigma2 + np.diag(moments.Sigma)[k] * weight**2 - 2 * moments.mu[k] * weight)


def _examples(x: Any, y: Any) -> tuple[Floats, Floats]:
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x.shape[:-1] != y.shape:
        check.refuse("y", f"of shape {x.shape[:-1]}, one label for each example", y.shape, "Give x one row for each y.")
    if (x < 0).any() or (y < 0).any() or not (x > 0).any(axis=-1).all():
        check.refuse("x and y", "non-negative, no x all zero", "other signs", "Proposition E.2 assumes these signs.")
    return x, y


def _single(x: Floats, y: Floats, k: Any) -> Floats:
    if np.take_along_axis(x, k[..., None], axis=-1).min() == 0:
        check.refuse("x", "without zeros for the least sharpness", 0.0, "A zero entry of x cannot produce y: drop it.")
    u = np.zeros(x.shape)
    np.put_along_axis(u, k[..., None], (y / np.take_along_axis(x, k[..., None], axis=-1)[..., 0])[..., None], axis=-1)
    return u


# Two distributions of (x, y) with x > 0: log-normal, where all expectations of Proposition E.2 are finite, and the
# folded Gaussian of appendix E.1, with exact expectations for β = 1.


@dataclass(frozen=True)
class LogNormal:
    """Correlated positive inputs: x = exp(s), s Gaussian with variance `spread`² and correlation `rho`.

    y = ⟨β, x⟩ξ with ln ξ ~ N(−τ²/2, τ²), τ = `noise`.

    >>> m = LogNormal((1.0,), spread=0.5, noise=0.0).moments()
    >>> bool(m.sigma2 == m.mu[0] == np.exp(0.5))                    # E x² = e^{2 spread²}
    True
    """

    beta: tuple[float, ...]
    spread: float = 0.4
    rho: float = 0.3
    noise: float = 0.2

    def moments(self) -> Moments:
        """E xᵢxⱼ = exp(spread²(1 + ρᵢⱼ)), μ = Σβ, σ² = βᵀΣβ E ξ²."""
        d = len(self.beta)
        correlation = self.rho + (1 - self.rho) * np.eye(d)
        Sigma = np.exp(self.spread**2 * (1 + correlation))
        mu = Sigma @ np.asarray(self.beta)
        return Moments(Sigma, mu, float(np.asarray(self.beta) @ mu * np.exp(self.noise**2)))

    def __call__(self, rng: np.random.Generator, samples: int) -> tuple[Floats, Floats]:
        d = len(self.beta)
        own, common = rng.standard_normal((samples, d)), rng.standard_normal((samples, 1))
        x = np.exp(self.spread * (np.sqrt(1 - self.rho) * own + np.sqrt(self.rho) * common))
        factor = np.exp(self.noise * rng.standard_normal(samples) - self.noise**2 / 2)
        return x, x @ np.asarray(self.beta) * factor


@dataclass(frozen=True)
class Folded:
    """x = |g|, g ~ N(0, I_n), y = ⟨β, x⟩ + noise·ε: `moments` in closed form, samples from a generator.

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
    """(E⟨1, x⟩/x_max, E⟨1, x⟩²/x_max²), exactly: given x_max = m the other entries are independent and below m.

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
    """n(n − 1)(2/π): the density n√(2/π) of x_min at 0 times the mean (n − 1)√(2/π) of the other entries' sum."""
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
    """The same for x_min, over x_min > δ: it grows like `square_rate(n)`/(2δ), so the expectation is infinite."""
    from scipy.special import erfc

    first, second = truncated_min(n, delta)
    moments = Folded(n).moments()
    kept = float(erfc(delta / np.sqrt(2))) ** n
    return 0.5 * (moments.sigma2 * kept + second - 2 * float(moments.mu[0]) * first)


def _moments_of_sum(n: int, first: float, second: float) -> tuple[float, float]:
    """The means of 1 + s and of (1 + s)², where s is a sum of n − 1 independent ratios with these two moments."""
    k = n - 1
    return 1 + k * first, 1 + 2 * k * first + k * second + k * (k - 1) * first**2


def _against(weight: Any, given: Any, low: float) -> tuple[float, float]:
    """∫ given(m) weight(m) √(2/π)e^{−m²/2} dm from `low`, over ln m: near 0 the integrands are powers of m."""
    from scipy.integrate import quad

    def integrand(t: float, part: int) -> float:
        m = float(np.exp(t))
        return float(given(m)[part] * weight(m) * _ROOT * np.exp(-(m**2) / 2) * m)

    # Below e⁻²⁵ and above e^2.3 ≈ 10 the mass of the half-normal is below rounding.
    first = np.log(low) if low > 0 else -25.0
    halves = [quad(integrand, first, 2.3, args=(part,), epsabs=1e-12, epsrel=1e-12, limit=400)[0] for part in (0, 1)]
    return float(halves[0]), float(halves[1])
