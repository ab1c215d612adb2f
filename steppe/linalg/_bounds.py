"""Upper bounds of an extreme eigenvalue from a Krylov space whose start vector is random."""

from dataclasses import dataclass

import numpy as np

from steppe.linalg._lanczos import Krylov
from steppe.linalg._operator import Vector


@dataclass(frozen=True, eq=False)
class Christoffel:
    """The bound of λ_max by the Christoffel function of the spectral measure of the start vector b.

    Lanczos from b built the orthonormal basis v_j = φ_j(A) b. An eigenvector u of eigenvalue μ has
    ⟨v_j, u⟩ = φ_j(μ)⟨b, u⟩, and Σ ⟨v_j, u⟩² ≤ 1 (Bessel), so

        ⟨b, u⟩² ≤ 1/K(μ),   K(μ) = Σ_j φ_j(μ)².

    In the Ritz basis, with Ritz values θ_i and residual norms |t_i|,

        K(μ) = φ(μ)² (1 + Σ_i t_i²/(μ − θ_i)²),   φ(μ) = Π(μ − θ_i) Π(μ − ψ_l)/Πβ,

    where φ is the polynomial of the next vector, ψ_l are the Ritz values that restarts discarded, and β are all
    residual norms so far. The formula holds through restarts, and every factor grows with μ beyond all θ and ψ.

    `theta` ascends, `tail` holds t, `roots` ψ and `log_beta` Σ log β.
    """

    theta: Vector
    tail: Vector
    roots: Vector
    log_beta: float

    @classmethod
    def of(cls, chain: Krylov, sign: float = 1.0) -> "Christoffel":
        """One end of the spectrum: sign = −1 reads −A."""
        theta, _, residual = chain.ritz()
        # A chain that spans the space has no next vector, and no residual.
        tail = residual[0] if len(residual) else np.zeros_like(theta)
        order = np.argsort(sign * theta, kind="stable")
        return cls(sign * theta[order], tail[order], sign * np.array(chain.roots), chain.log_beta)

    @property
    def top(self) -> float:
        """max θ, a lower bound of λ_max up to rounding."""
        return float(self.theta[-1])

    def log_kernel(self, mu: float) -> float:
        """log K(μ) for μ > max θ.

        >>> one = Christoffel(np.array([0.0]), np.array([2.0]), np.empty(0), np.log(2.0))
        >>> np.exp(one.log_kernel(4.0)).round(12).tolist()   # one product: φ₀ = 1, φ₁(μ) = μ/2, K(4) = 1 + 4
        5.0
        """
        gaps = mu - self.theta
        phi = np.log(gaps).sum() + np.log(mu - self.roots).sum() - self.log_beta
        return float(2.0 * phi + np.log1p(((self.tail / gaps) ** 2).sum()))

    def log_kernel_at_top(self) -> float:
        """log K(max θ), where K is 1/⟨b, y⟩² of the Ritz vector y; −∞ if y is an eigenvector up to rounding.

        >>> Christoffel(np.array([0.0]), np.array([2.0]), np.empty(0), np.log(2.0)).log_kernel_at_top()   # y = b
        0.0
        """
        if self.tail[-1] == 0.0:
            return -np.inf
        phi = np.log(self.top - self.theta[:-1]).sum() + np.log(self.top - self.roots).sum() - self.log_beta
        return float(2.0 * (phi + np.log(abs(self.tail[-1]))))

    def upper(self, weight: float) -> float:
        """The μ > max θ with K(μ) = 1/weight: λ_max ≤ μ if its eigenvector u has ⟨b, u⟩² ≥ weight.

        Bisection on log(μ − max θ), to a thousandth of the gap, rounded up.

        >>> one = Christoffel(np.array([0.0]), np.array([2.0]), np.empty(0), np.log(2.0))
        >>> round(one.upper(0.2), 2)   # K(4) = 5
        4.0
        """
        count = len(self.theta) + len(self.roots)
        # Every factor of φ is at least μ − max θ, so at this gap φ² alone is 1/weight.
        high = (self.log_beta - 0.5 * np.log(weight)) / count
        low = high - 80.0  # a gap e⁻⁸⁰ times smaller is beyond float64
        while high - low > 1e-3:
            middle = 0.5 * (low + high)
            mu = self.top + np.exp(middle)
            if mu == self.top or self.log_kernel(mu) < -np.log(weight):
                low = middle
            else:
                high = middle
        return self.top + float(np.exp(high))

    def excludes(self, mu: float, weight: float) -> bool:
        """Whether an eigenvalue of μ or more contradicts ⟨b, u⟩² ≥ weight."""
        if mu <= self.top:
            return False
        return self.log_kernel(mu) >= -float(np.log(weight))

    def unlucky(self, weight: float) -> bool:
        """Whether even max θ is excluded. Since λ_max ≥ max θ, its eigenvector then has ⟨b, u⟩² < weight: the rare
        event has happened, and no bound follows from its absence."""
        if len(self.theta) == 1 and not len(self.roots):
            return False
        return self.log_kernel_at_top() > -float(np.log(weight))

    def error(self) -> float:
        """An estimate, not a bound, of λ − max θ."""
        gap = float(self.theta[-1] - self.theta[-2]) if len(self.theta) > 1 else 0.0
        return ritz_error(self.top, abs(float(self.tail[-1])), gap)


def ritz_error(theta: float, residual: float, gap: float) -> float:
    """An estimate, not a bound, of the error of a Ritz value: ‖r‖²/gap (Kato 1949, Temple 1928), at most ‖r‖.

    A few steps after a start the next Ritz value can be far off, at the other end of the spectrum, so the gap
    counts as |θ| at most.

    >>> ritz_error(10.0, 0.1, 2.0), ritz_error(10.0, 0.1, 0.05)
    (0.005000000000000001, 0.1)
    """
    gap = min(gap, abs(theta))
    return residual**2 / gap if gap > residual else residual


def kuczynski_wozniakowski(theta_min: float, theta_max: float, steps: int, p: int, *, confidence: float) -> float:
    """An upper bound of λ_max after `steps` Lanczos products from one uniformly random start, without restarts.

    P(λ_max − θ_max > ε (λ_max − λ_min)) ≤ 1.648 √p exp(−√ε (2k − 1)) (Kuczyński and Woźniakowski 1992,
    Theorem 4.2, applied to A − λ_min I). Both ends at (1 − confidence)/2 give the spread
    λ_max − λ_min ≤ (θ_max − θ_min)/(1 − 2ε) and λ_max ≤ θ_max + ε × spread; infinite if 2ε ≥ 1.
    This bound depends on the number of steps only. The Christoffel bound depends on the Lanczos coefficients too,
    and is never far above it; this one is for comparison.

    >>> round(kuczynski_wozniakowski(0.0, 1.0, 100, 1000, confidence=0.99), 4)
    1.0022
    """
    delta = 0.5 * (1.0 - confidence)
    epsilon = (np.log(1.648 * np.sqrt(p) / delta) / (2 * steps - 1)) ** 2
    if 2.0 * epsilon >= 1.0:
        return float("inf")
    return float(theta_max + epsilon * (theta_max - theta_min) / (1.0 - 2.0 * epsilon))
