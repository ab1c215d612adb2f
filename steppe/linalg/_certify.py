"""Intervals for extreme eigenvalues from a Krylov space."""

from dataclasses import dataclass

import numpy as np

from steppe import check
from steppe.estimate import Estimate
from steppe.linalg._lanczos import Krylov
from steppe.linalg._lanczos import start as random_start
from steppe.linalg._operator import Matvec, Operator, Vector, dimension, generator, probability, tolerance, vector

# An upper bound for λ_max from the weight of its eigenvector in the start vector.


def log_kernel(mu: float, theta: Vector, tail: Vector, roots: Vector, log_beta: float) -> float:
    """log K(μ), K(μ) = Σ_j φ_j(μ)², where the orthonormal basis that Lanczos built from b is v_j = φ_j(A) b.

    An eigenvector u of eigenvalue μ has ⟨v_j, u⟩ = φ_j(μ)⟨b, u⟩, and Σ ⟨v_j, u⟩² ≤ 1 (Bessel), so

        ⟨b, u⟩² ≤ 1/K(μ),

    the Christoffel function of the spectral measure of b. In the Ritz basis (θ_i, residual norm |t_i|),

        K(μ) = φ(μ)² (1 + Σ_i t_i²/(μ − θ_i)²),   φ(μ) = Π(μ − θ_i) Π(μ − ψ_l)/Πβ,

    with φ the polynomial of the next vector, ψ_l the Ritz values that restarts discarded and β every residual
    norm so far: it holds through restarts, and every factor grows with μ beyond all θ and ψ.

    >>> theta, beta = np.array([0.0]), 2.0   # one product: φ₀ = 1, φ₁(μ) = μ/2, K(4) = 1 + 4
    >>> np.exp(log_kernel(4.0, theta, np.array([beta]), np.empty(0), np.log(beta))).round(12).tolist()
    5.0
    """
    gaps = mu - theta
    phi = np.log(gaps).sum() + np.log(mu - roots).sum() - log_beta
    return float(2.0 * phi + np.log1p(((tail / gaps) ** 2).sum()))


def log_kernel_at_top(theta: Vector, tail: Vector, roots: Vector, log_beta: float) -> float:
    """log K at the largest θ, where K is 1/⟨b, y⟩² of its Ritz vector y; −∞ where y is an eigenvector to rounding.

    >>> theta, beta = np.array([0.0]), 2.0                     # one product: y = b
    >>> log_kernel_at_top(theta, np.array([beta]), np.empty(0), np.log(beta))
    0.0
    """
    k = int(np.argmax(theta))
    if tail[k] == 0.0:
        return -np.inf
    top = theta[k]
    phi = np.log(top - np.delete(theta, k)).sum() + np.log(top - roots).sum() - log_beta
    return float(2.0 * (phi + np.log(abs(tail[k]))))


def christoffel_upper(weight: float, theta: Vector, tail: Vector, roots: Vector, log_beta: float) -> float:
    """The μ > max θ with K(μ) = 1/weight: λ_max ≤ μ where the eigenvector has ⟨b, u⟩² ≥ weight.

    Bisection on log(μ − max θ), to a thousandth of the gap, rounded up.

    >>> theta, beta = np.array([0.0]), 2.0
    >>> round(upper(0.2, theta, np.array([beta]), np.empty(0), np.log(beta)), 2)   # K(4) = 5
    4.0
    """
    top = float(theta.max())
    count = len(theta) + len(roots)
    # Every factor of φ is at least μ − max θ, so at this gap φ² alone is 1/weight.
    high = (log_beta - 0.5 * np.log(weight)) / count
    low = high - 80.0  # a gap e⁻⁸⁰ times smaller is beyond float64
    while high - low > 1e-3:
        middle = 0.5 * (low + high)
        mu = top + np.exp(middle)
        if mu == top or log_kernel(mu, theta, tail, roots, log_beta) < -np.log(weight):
            low = middle
        else:
            high = middle
    return top + float(np.exp(high))


# The a priori bound of Kuczyński and Woźniakowski, for comparison with the Christoffel bound.


def kuczynski_wozniakowski(theta_min: float, theta_max: float, steps: int, p: int, *, confidence: float) -> float:
    """An upper bound for λ_max after `steps` Lanczos products from one uniformly random start, no restarts.

    P(λ_max − θ_max > ε (λ_max − λ_min)) ≤ 1.648 √p exp(−√ε (2k − 1)) (Kuczyński and Woźniakowski 1992,
    Theorem 4.2, applied to A − λ_min I). Both ends at (1 − confidence)/2 give the spread
    λ_max − λ_min ≤ (θ_max − θ_min)/(1 − 2ε) and λ_max ≤ θ_max + ε × spread; infinite where 2ε ≥ 1.
    It knows only the number of steps; the Christoffel bound reads the coefficients and is never far above it.

    >>> round(kuczynski_wozniakowski(0.0, 1.0, 100, 1000, confidence=0.99), 4)
    1.0022
    """
    delta = 0.5 * (1.0 - confidence)
    epsilon = (np.log(1.648 * np.sqrt(p) / delta) / (2 * steps - 1)) ** 2
    if 2.0 * epsilon >= 1.0:
        return float("inf")
    return float(theta_max + epsilon * (theta_max - theta_min) / (1.0 - 2.0 * epsilon))


# Lanczos from a random start until an end of the spectrum is bracketed.


def ritz_error(theta: float, residual: float, gap: float) -> float:
    """An estimate, not a bound, of the error of a Ritz value: ‖r‖²/gap (Kato 1949, Temple 1928), at most ‖r‖.

    A few steps after a start the next Ritz value can be far off, at the other end of the spectrum: no gap
    wider than |θ| is believed.

    >>> ritz_error(10.0, 0.1, 2.0), ritz_error(10.0, 0.1, 0.05)
    (0.005000000000000001, 0.1)
    """
    gap = min(gap, abs(theta))
    return residual**2 / gap if gap > residual else residual


@dataclass(frozen=True, eq=False)
class Side:
    """One end of the spectrum, turned so that it is the top: sign = −1 reads −A."""

    theta: Vector
    tail: Vector
    roots: Vector
    log_beta: float

    @classmethod
    def of(cls, chain: Krylov, sign: float) -> "Side":
        theta, _, residual = chain.ritz()
        # A spanned space has no next vector, and no residual.
        tail = residual[0] if len(residual) else np.zeros_like(theta)
        order = np.argsort(sign * theta)
        return cls(sign * theta[order], tail[order], sign * np.array(chain.roots), chain.log_beta)

    @property
    def top(self) -> float:
        return float(self.theta[-1])

    def excludes(self, mu: float, weight: float) -> bool:
        """Whether an eigenvalue μ or more would contradict ⟨b, u⟩² ≥ weight."""
        if mu <= self.top:
            return False
        known = log_kernel(mu, self.theta, self.tail, self.roots, self.log_beta)
        return known >= -float(np.log(weight))

    def upper(self, weight: float) -> float:
        return christoffel_upper(weight, self.theta, self.tail, self.roots, self.log_beta)

    def unlucky(self, weight: float) -> bool:
        """Whether θ itself is excluded. λ_max is not below θ, so that its eigenvector has ⟨b, u⟩² < weight: that rare
        event has happened, and nothing can be concluded from its not happening."""
        if len(self.theta) == 1 and not len(self.roots):
            return False
        known = log_kernel_at_top(self.theta, self.tail, self.roots, self.log_beta)
        return known > -float(np.log(weight))

    def error(self) -> float:
        """An estimate of λ − θ for the top Ritz value."""
        gap = float(self.theta[-1] - self.theta[-2]) if len(self.theta) > 1 else 0.0
        return ritz_error(self.top, abs(float(self.tail[-1])), gap)


def _kept(chain: Krylov, signs: tuple[float, ...]) -> np.ndarray:
    """Half of the basis, from the ends that are wanted."""
    half = chain.capacity // 2
    bottom = half * signs.count(-1.0) // len(signs)
    return np.delete(np.arange(chain.size), np.arange(bottom, chain.size - (half - bottom)))


def certified(
    matvec: Matvec,
    p: int,
    *,
    signs: tuple[float, ...],
    rtol: float,
    settle: float | None,
    confidence: float,
    max_matvecs: int,
    basis: int,
    start: Vector | None,
    precision: float | None,
    key: int | np.random.Generator,
) -> tuple[Estimate, Krylov]:
    """max over `signs` s of λ_max(sA), with the chain that found it: (+1) the largest eigenvalue, (−1) minus the
    smallest, both ‖A‖. The arguments are those of `largest`."""
    p, rtol, delta = dimension(p), tolerance(rtol), 1.0 - probability(confidence)
    settle = -1.0 if settle is None else check.number("settle", settle, above=0.0)
    max_matvecs = check.integer("max_matvecs", max_matvecs, minimum=1)
    basis = check.integer("basis", basis, minimum=4, remedy="Thick restart keeps half of at least four vectors.")
    warm = None if start is None else vector("start", start, p)
    rng, a = generator(key), Operator(matvec, p, precision)
    first = random_start(p, warm=warm, key=rng)
    # Half of δ: the bound is sharp, and the model of the rounding holds with high probability only.
    weight = first.weight(0.5 * delta)
    chain = Krylov(a, first.vector[None], capacity=min(basis, p))
    bound = np.inf
    while True:
        chain.expand(rng)
        sides = [Side.of(chain, sign) for sign in signs]
        value, pad = max(side.top for side in sides), chain.rounding
        certain = chain.exhausted or chain.scale == 0.0
        # Closer than the rounding no further product can bring the bound.
        target = value + max(rtol * abs(value) - 2.0 * pad, pad)
        reached = not certain and all(side.excludes(target, weight) for side in sides)
        leading = max(sides, key=lambda side: side.top)
        unlucky = not certain and leading.unlucky(weight)
        if unlucky:
            reached = reached and leading.error() <= rtol * abs(value)
        done = reached or certain or chain.broken or a.matvecs >= max_matvecs
        done = done or leading.error() <= settle * abs(value)
        if done or chain.full:
            # One event, ⟨b, u⟩² ≥ weight, carries the bounds of all steps: the smallest of them holds.
            bound = min(bound, value if certain else max(side.upper(weight) for side in sides))
        if done:
            break
        if chain.full:
            chain.restart(_kept(chain, signs))
    if unlucky:  # an estimate of the error, not a bound, is then what there is; the width asked for, but for rounding
        bound = value + 0.99 * (target - value) if reached else np.inf
    bound = max(value, min(bound, target) if reached else bound)
    # The product of a p = 1 operator is its only entry: there is nothing to round.
    pad = 0.0 if p == 1 else pad
    lower, upper = float(value - pad), float(bound + pad)
    level = 1.0 if certain else confidence
    return Estimate(value, lower, upper, level, a.matvecs, converged=upper - lower <= rtol * abs(value)), chain
