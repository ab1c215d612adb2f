"""A start vector whose weight on any fixed eigenvector is bounded below with known probability."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from steppe.linalg.arguments import Matrix, Vector
from steppe.linalg.orthogonal import project
from steppe.linalg.probes import gaussian

# Norm of the random part of a warm start over that of its known part. The bound on λ_max loses only a factor
# noise² of weight, worth a product or two; the Ritz value is second order in it.
NOISE = 0.1


@dataclass(frozen=True, eq=False)
class Start:
    """b = x/‖x‖ with x = v + s g, g standard normal; `ratio` is s/‖x‖.

    For a fixed unit vector u, ⟨x, u⟩ = ⟨v, u⟩ + s⟨g, u⟩ and ⟨g, u⟩ is a standard normal, whose density is
    symmetric and unimodal: whatever v, P(|⟨x, u⟩| < s z) ≤ P(|g₁| < z) (Anderson 1955). So

        ⟨b, u⟩² ≥ τ(δ) = (s z/‖x‖)²  with probability ≥ 1 − δ,  where P(|g₁| < z) = δ.

    With v = 0 this is the quantile of ⟨b, u⟩² ~ Beta(1/2, (p − 1)/2), the weight of a uniformly random unit vector.
    """

    vector: Vector
    ratio: float

    def weight(self, delta: float) -> float:
        """τ(δ).

        >>> round(Start(np.ones(1), ratio=1.0).weight(0.6826895), 6)   # P(|g₁| < 1) = 0.6827
        1.0
        """
        return float((self.ratio * ndtri(0.5 + 0.5 * delta)) ** 2)


def start(
    p: int,
    *,
    warm: Vector | None = None,
    noise: float = NOISE,
    against: Matrix | None = None,
    key: np.random.Generator,
) -> Start:
    """A random start; with `warm` = v, that vector with an admixture of noise.

    `against` holds orthonormal rows to be removed. For u orthogonal to them the argument above is unchanged.
    """
    g = gaussian(p, key)
    known = 0.0 if warm is None else float(np.linalg.norm(warm))
    s = noise * known / float(np.sqrt(p)) if known > 0.0 else 1.0
    x = s * g if warm is None else warm + s * g
    if against is not None and len(against):
        x = project(x, against)
    norm = float(np.linalg.norm(x))
    return Start(x / norm, s / norm)
