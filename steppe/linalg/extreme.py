"""The extreme eigenvalues of a symmetric operator, each with a certified interval."""

from dataclasses import dataclass, replace

import numpy as np

from steppe import check
from steppe.estimate import Estimate
from steppe.linalg import christoffel
from steppe.linalg.arguments import Vector, dimension, generator, probability, tolerance, vector
from steppe.linalg.krylov import Krylov
from steppe.linalg.operator import Matvec, Operator
from steppe.linalg.start import start as random_start


@dataclass(frozen=True, eq=False)
class Eigenpair:
    """An eigenvalue with its interval, and the unit Ritz vector that attains `estimate.value`."""

    estimate: Estimate
    vector: Vector


@dataclass(frozen=True)
class _Side:
    """One end of the spectrum, seen as the top one: sign = −1 reads −A."""

    sign: float
    top: float
    theta: Vector
    tail: Vector
    roots: Vector
    log_beta: float

    def excludes(self, mu: float, weight: float) -> bool:
        """Whether an eigenvalue μ or more would contradict ⟨b, u⟩² ≥ weight."""
        known = christoffel.log_kernel(mu, self.theta, self.tail, self.roots, self.log_beta)
        return mu > self.top and known >= -np.log(weight)

    def upper(self, weight: float) -> float:
        return christoffel.upper(weight, self.theta, self.tail, self.roots, self.log_beta)

    def error(self) -> float:
        """An estimate of λ − θ for the top Ritz value: its residual, squared over the gap where that is smaller."""
        order = np.argsort(self.theta)
        residual = abs(float(self.tail[order[-1]]))
        gap = float(self.theta[order[-1]] - self.theta[order[-2]]) if len(order) > 1 else 0.0
        return residual * min(1.0, residual / gap) if gap > 0.0 else residual


def _sides(chain: Krylov, signs: tuple[float, ...]) -> list[_Side]:
    theta, _, residual = chain.ritz()
    # An exhausted space has no next vector, and no residual.
    tail = residual[0] if len(residual) else np.zeros_like(theta)
    roots = np.array(chain.roots)
    return [_Side(s, float((s * theta).max()), s * theta, tail, s * roots, chain.log_beta) for s in signs]


def _kept(chain: Krylov, signs: tuple[float, ...]) -> np.ndarray:
    """Half of the basis, from the ends that are wanted."""
    half = max(1, chain.capacity // 2)
    bottom = {(1.0,): 0, (-1.0,): half}.get(signs, half // 2)
    return np.r_[0:bottom, chain.size - (half - bottom) : chain.size]


def _extreme(
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
) -> Eigenpair:
    """max over `signs` s of λ_max(sA): (+1) the largest eigenvalue, (−1) minus the smallest, both ‖A‖."""
    p, rtol, delta = dimension(p), tolerance(rtol), 1.0 - probability(confidence)
    settle = -1.0 if settle is None else check.number("settle", settle, above=0.0)
    max_matvecs = check.integer("max_matvecs", max_matvecs, minimum=1)
    basis = check.integer("basis", basis, minimum=4, remedy="Thick restart keeps half of at least four vectors.")
    rng, warm = generator(key), None if start is None else vector("start", start, p)
    a = Operator(matvec, p, precision)
    if p == 1:
        value = float(a(np.ones(1))[0])
        top = max(s * value for s in signs)
        return Eigenpair(Estimate.exact(top, matvecs=1), np.ones(1))
    first = random_start(p, warm=warm, key=rng)
    # Half of δ: the bound is sharp, and the model of the rounding holds with high probability only.
    weight = first.weight(0.5 * delta)
    chain = Krylov(a, first.vector[None], capacity=min(basis, p))
    bound = np.inf
    while True:
        chain.expand(rng)
        sides = _sides(chain, signs)
        value, pad = max(side.top for side in sides), chain.rounding
        certain = chain.exhausted or chain.scale == 0.0
        # Closer than the rounding no further product can bring the bound.
        target = value + max(rtol * abs(value) - 2.0 * pad, pad)
        reached = all(side.excludes(target, weight) for side in sides)
        done = reached or certain or chain.broken or a.matvecs >= max_matvecs
        done = done or max(side.error() for side in sides if side.top == value) <= settle * abs(value)
        if done or chain.full:
            # One event, ⟨b, u⟩² ≥ weight, carries the bounds of all steps: the smallest of them holds.
            bound = min(bound, value if certain else max(side.upper(weight) for side in sides))
        if reached:
            bound = min(bound, target)
        if done:
            break
        if chain.full:
            chain.restart(_kept(chain, signs))
    lower, upper = value - pad, max(value, bound) + pad
    converged = upper - lower <= rtol * abs(value)
    estimate = Estimate(value, lower, upper, 1.0 if certain else confidence, a.matvecs, converged=converged)
    theta, S, _ = chain.ritz()
    best = int(np.argmax([max(s * t for s in signs) for t in theta]))
    return Eigenpair(estimate, S[:, best] @ chain.basis)


def largest(
    matvec: Matvec,
    p: int,
    *,
    rtol: float = 1e-3,
    settle: float | None = None,
    confidence: float = 0.99,
    max_matvecs: int = 1000,
    basis: int = 32,
    start: Vector | None = None,
    precision: float | None = None,
    key: int | np.random.Generator,
) -> Eigenpair:
    """λ_max(A), the algebraically largest eigenvalue, with θ − e ≤ λ_max ≤ μ + e.

    θ is the largest Ritz value of Lanczos, e its rounding (see `Krylov.rounding`), and μ > θ solves
    τ Σ_j φ_j(μ)² = 1 (see `christoffel`): the random start has weight τ on the eigenvector with probability
    `confidence` (see `Start`). The bound tightens as fast as Lanczos converges, and sees every restart.

    Stops when upper − lower ≤ rtol |θ|; `settle` stops earlier, when the estimated error of θ itself is below
    settle |θ|, and `max_matvecs` at the latest: then `converged` tells whether rtol was met. `start` is an
    approximate eigenvector, `basis` the number of vectors held, `precision` the relative error of a product.
    p = 1, zero and a spanned space are exact up to rounding and have confidence 1.

    >>> d = np.array([-5.0, 0.0, 1.0, 4.0])
    >>> round(largest(lambda v: d * v, 4, key=0).estimate.value, 9)
    4.0

    Kuczyński and Woźniakowski 1992 for the random start; Wu and Simon 2000 for the restart.
    """
    return _extreme(
        matvec, p, signs=(1.0,), rtol=rtol, settle=settle, confidence=confidence, max_matvecs=max_matvecs,
        basis=basis, start=start, precision=precision, key=key,
    )  # fmt: skip


def smallest(
    matvec: Matvec,
    p: int,
    *,
    rtol: float = 1e-3,
    settle: float | None = None,
    confidence: float = 0.99,
    max_matvecs: int = 1000,
    basis: int = 32,
    start: Vector | None = None,
    precision: float | None = None,
    key: int | np.random.Generator,
) -> Eigenpair:
    """λ_min(A) = −λ_max(−A), with the arguments of `largest`.

    >>> d = np.array([-5.0, 0.0, 1.0, 4.0])
    >>> round(smallest(lambda v: d * v, 4, key=0).estimate.value, 9)
    -5.0
    """
    pair = _extreme(
        matvec, p, signs=(-1.0,), rtol=rtol, settle=settle, confidence=confidence, max_matvecs=max_matvecs,
        basis=basis, start=start, precision=precision, key=key,
    )  # fmt: skip
    e = pair.estimate
    return Eigenpair(replace(e, value=-e.value, lower=-e.upper, upper=-e.lower), pair.vector)


def spectral_norm(
    matvec: Matvec,
    p: int,
    *,
    rtol: float = 1e-3,
    settle: float | None = None,
    confidence: float = 0.99,
    max_matvecs: int = 1000,
    basis: int = 32,
    start: Vector | None = None,
    precision: float | None = None,
    key: int | np.random.Generator,
) -> Eigenpair:
    """‖A‖ = max |λ|, with the arguments of `largest`; the sign of that eigenvalue is the vector's Rayleigh quotient.

    Only the eigenvector that attains the norm must have weight in the start, so both ends share one
    confidence: ‖A‖ ≤ max(μ₊, μ₋).

    >>> d = np.array([-5.0, 0.0, 1.0, 4.0])
    >>> round(spectral_norm(lambda v: d * v, 4, key=0).estimate.value, 9)
    5.0
    """
    return _extreme(
        matvec, p, signs=(1.0, -1.0), rtol=rtol, settle=settle, confidence=confidence, max_matvecs=max_matvecs,
        basis=basis, start=start, precision=precision, key=key,
    )  # fmt: skip
