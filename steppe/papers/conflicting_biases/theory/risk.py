"""The risk of the diagonal model: its form, its least value, expectations over data."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from steppe import check
from steppe.estimate import Estimate
from steppe.examples import Floats

# The risk R(w) = E ½(⟨w², x⟩ − y)² of the diagonal network in closed form (Lemma E.1, Eq. 21).


@dataclass(frozen=True, eq=False)
class Moments:
    """Σ = E xxᵀ, μ = E yx, σ² = E y²: all that the risk knows of the distribution."""

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
        risk: Floats = 0.5 * (np.sum((u @ self.Sigma) * u, axis=-1) - 2 * u @ self.mu + self.sigma2)
        return risk


def gaussian(d: int) -> Moments:
    """x ~ N(0, I), y = ⟨1, x⟩ + ε: Σ = I, μ = 1, σ² = d + 1 (Lemma E.1)."""
    return Moments(np.eye(d), np.ones(d), d + 1.0)


def risk(w: Any) -> Floats:
    """½‖w‖₄⁴ − ‖w‖² + ½(d + 1) (Lemma E.1).

    >>> float(risk([1.0, 1.0]))                                     # what is left is the noise, ½ E ε²
    0.5
    """
    u = np.asarray(w, dtype=np.float64) ** 2
    return gaussian(u.shape[-1]).risk(u)


# Expected generalisation errors by Monte Carlo, with their standard error (Proposition E.2, any distribution).

Sampler = Callable[[np.random.Generator, int], tuple[Floats, Floats]]
Algorithm = Callable[[Floats, Floats], Floats]


def expected_risk(
    algorithm: Algorithm, sampler: Sampler, moments: Moments, *, samples: int = 100_000, key: int = 0
) -> Estimate:
    """E R(A(x₀, y₀)) over draws of the one training example, ± 2.576 standard errors (99%).

    Only where the variance is finite does the interval mean anything: see `folded.truncated_min` for where it is not.
    """
    x, y = sampler(np.random.default_rng(key), check.integer("samples", samples, minimum=2))
    return mean(moments.risk(algorithm(x, y)))


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


# Correlated positive inputs with every moment, inverse ones too: a distribution on which Prop. E.2 is finite.


@dataclass(frozen=True)
class LogNormal:
    """x = exp(s), s Gaussian with variance `spread`² and correlation `rho`; y = ⟨β, x⟩ξ, ln ξ ~ N(−τ²/2, τ²).

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
