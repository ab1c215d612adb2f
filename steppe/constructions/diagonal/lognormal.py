"""Correlated positive inputs with every moment, inverse ones too: a distribution on which Prop. E.2 is finite."""

from dataclasses import dataclass

import numpy as np

from steppe.constructions._examples import Floats
from steppe.constructions.diagonal.risk import Moments


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
