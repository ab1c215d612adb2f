"""The risk R(w) = E ½(⟨w², x⟩ − y)² of the diagonal network in closed form (Lemma E.1, Eq. 21)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats


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
