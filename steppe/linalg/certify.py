"""Lanczos from a random start until an end of the spectrum is bracketed."""

from dataclasses import dataclass

import numpy as np

from steppe import check
from steppe.estimate import Estimate
from steppe.linalg import christoffel
from steppe.linalg.arguments import Vector, dimension, generator, probability, tolerance, vector
from steppe.linalg.krylov import Krylov
from steppe.linalg.operator import Matvec, Operator
from steppe.linalg.start import start as random_start


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
        known = christoffel.log_kernel(mu, self.theta, self.tail, self.roots, self.log_beta)
        return known >= -float(np.log(weight))

    def upper(self, weight: float) -> float:
        return christoffel.upper(weight, self.theta, self.tail, self.roots, self.log_beta)

    def unlucky(self, weight: float) -> bool:
        """Whether θ itself is excluded. λ_max is not below θ, so that its eigenvector has ⟨b, u⟩² < weight: that rare
        event has happened, and nothing can be concluded from its not happening."""
        if len(self.theta) == 1 and not len(self.roots):
            return False
        known = christoffel.log_kernel_at_top(self.theta, self.tail, self.roots, self.log_beta)
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
