"""Extreme and top eigenvalues with certified intervals."""

from dataclasses import dataclass, replace

import numpy as np

from steppe import check
from steppe.estimate import Estimate
from steppe.linalg._certify import certified
from steppe.linalg._lanczos import Krylov, start
from steppe.linalg._operator import (
    Matrix,
    Matvec,
    Operator,
    Vector,
    count,
    dimension,
    generator,
    probability,
    tolerance,
)
from steppe.linalg._subspace import Subspace, complement_upper, eigenvalue_upper, ritz_pairs

# The largest eigenvalue, the smallest and the spectral norm of a symmetric operator, with certified intervals.


@dataclass(frozen=True, eq=False)
class Eigenpair:
    """An eigenvalue with its interval, and the unit Ritz vector that attains `estimate.value`."""

    estimate: Estimate
    vector: Vector


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
    approximate eigenvector; it brings the value sooner, not the bound, which must rule out all other directions.
    `basis` is the number of vectors held, `precision` the relative error of a product.
    p = 1 and the zero operator are exact; a spanned space is exact up to rounding, with confidence 1.

    >>> d = np.array([-5.0, 0.0, 1.0, 4.0])
    >>> round(largest(lambda v: d * v, 4, key=0).estimate.value, 9)
    4.0

    Kuczyński and Woźniakowski 1992 for the random start; Wu and Simon 2000 for the restart.
    """
    estimate, chain = certified(
        matvec, p, signs=(1.0,), rtol=rtol, settle=settle, confidence=confidence, max_matvecs=max_matvecs,
        basis=basis, start=start, precision=precision, key=key,
    )  # fmt: skip
    return Eigenpair(estimate, chain.ritz()[1][:, -1] @ chain.basis)


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
    e, chain = certified(
        matvec, p, signs=(-1.0,), rtol=rtol, settle=settle, confidence=confidence, max_matvecs=max_matvecs,
        basis=basis, start=start, precision=precision, key=key,
    )  # fmt: skip
    turned = replace(e, value=-e.value, lower=-e.upper, upper=-e.lower)
    return Eigenpair(turned, chain.ritz()[1][:, 0] @ chain.basis)


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
    """‖A‖ = max |λ|, with the arguments of `largest`; vᵀAv of the vector has the sign of that eigenvalue.

    Only the eigenvector that attains the norm must have weight in the start, so both ends share one
    confidence: ‖A‖ ≤ max(μ₊, μ₋).

    >>> d = np.array([-5.0, 0.0, 1.0, 4.0])
    >>> round(spectral_norm(lambda v: d * v, 4, key=0).estimate.value, 9)
    5.0
    """
    estimate, chain = certified(
        matvec, p, signs=(1.0, -1.0), rtol=rtol, settle=settle, confidence=confidence, max_matvecs=max_matvecs,
        basis=basis, start=start, precision=precision, key=key,
    )  # fmt: skip
    theta, S, _ = chain.ritz()
    return Eigenpair(estimate, S[:, int(np.argmax(np.abs(theta)))] @ chain.basis)


# The k algebraically largest eigenpairs, each with a certified interval.


@dataclass(frozen=True, eq=False)
class Eigenpairs:
    """Eigenvalues in descending order, each with its interval, and orthonormal vectors as columns (p × k)."""

    estimates: tuple[Estimate, ...]
    vectors: Matrix


def _search(
    a: Operator, known: Subspace, *, rtol: float, delta: float, max_matvecs: int, basis: int, key: np.random.Generator
) -> tuple[Krylov, float, int]:
    """A Lanczos chain in the complement of the known pairs, until σ shows that nothing above the last one was
    missed or a missed pair has as small a residual as they; the chain, σ and the number of pairs to take in."""
    first = start(a.p, against=known.rows, key=key)
    weight = first.weight(delta)
    chain = Krylov(a, first.vector[None], capacity=min(basis, a.p - len(known.rows)), against=known.rows)
    last, width = known.values[-1], rtol * abs(known.values[-1])
    while True:
        chain.expand(key)
        sigma, error = complement_upper(chain, weight), known.error + chain.rounding
        if chain.exhausted:
            return chain, sigma, chain.size
        theta, _, tail = chain.ritz()
        accurate = np.abs(tail[0]) <= np.maximum(0.25 * rtol * np.abs(theta), error)
        above = accurate & (theta > last + max(0.25 * width, error))
        # An unbroken row of pairs from the top: what lies above an inaccurate one would still be missed.
        found = int(np.argmin(np.append(above[::-1], False)))
        absent = sigma <= last + max(0.5 * width - 2.0 * error, error)
        if absent or found or chain.broken or a.matvecs >= max_matvecs:
            return chain, sigma, found
        if chain.full:
            chain.restart(np.arange(chain.size - max(1, chain.capacity // 2), chain.size))


def top_eigenpairs(
    matvec: Matvec,
    p: int,
    k: int,
    *,
    block: int = 1,
    rtol: float = 1e-3,
    confidence: float = 0.99,
    max_matvecs: int = 1000,
    basis: int = 32,
    precision: float | None = None,
    key: int | np.random.Generator,
) -> Eigenpairs:
    """λ_1 ≥ … ≥ λ_k, with θ_i − e ≤ λ_i ≤ μ_i + e for all i together.

    First k Ritz pairs by (block) Lanczos; θ_i ≤ λ_i by Cauchy interlacing. Then a Lanczos chain from a fresh
    random start in their complement gives σ, the Christoffel bound of what was missed, and μ_i follows from σ
    and the residuals (see `eigenvalue_upper`). A copy of a multiple eigenvalue that the first run cannot see
    appears in the chain; it is taken in and the complement is searched again. `block` > 1 sees `block` copies
    at once: take it as large as the cluster. Stops at `max_matvecs`; the upper ends are infinite where the
    products did not suffice for any search.

    >>> d = np.array([7.0, 7.0, 3.0, 1.0, 0.0, -9.0])
    >>> [round(e.value, 9) for e in top_eigenpairs(lambda v: d * v, 6, 3, key=0).estimates]
    [7.0, 7.0, 3.0]

    Parlett, The Symmetric Eigenvalue Problem, chapters 10 and 13; Wu and Simon 2000.
    """
    p, rtol, delta = dimension(p), tolerance(rtol), 1.0 - probability(confidence)
    k, block = count("k", k, p), count("block", block, p)
    max_matvecs = check.integer("max_matvecs", max_matvecs, minimum=k + block, remedy="Each pair takes a product.")
    remedy = "A restart keeps the pairs and needs room for two blocks."
    basis = check.integer("basis", basis, minimum=min(p, max(4, k + 2 * block)), remedy=remedy)
    rng, a = generator(key), Operator(matvec, p, precision)
    # Residuals of rtol/4 leave three quarters of the width to σ (Weyl).
    known = ritz_pairs(a, k, block=block, rtol=0.25 * rtol, max_matvecs=max_matvecs, basis=basis, key=rng)
    spanned = k == p
    uppers = known.values if spanned else np.full(k, np.inf)
    attempt = 0
    while not spanned and a.matvecs < max_matvecs:
        attempt += 1
        # Attempt j may fail with probability δ/(2 j (j + 1)): all of them together with δ/2.
        share = 0.5 * delta / (attempt * (attempt + 1))
        chain, sigma, found = _search(a, known, rtol=rtol, delta=share, max_matvecs=max_matvecs, basis=basis, key=rng)
        joint = known.joined(chain, found)
        known, spanned = joint.ritz(k), chain.exhausted
        uppers = np.minimum(uppers, [eigenvalue_upper(i, joint, sigma) for i in range(k)])
        uppers = np.maximum(uppers, known.values)
        # Closer than a few times the rounding no further search can bring them.
        goal = np.maximum(rtol * np.abs(known.values), 8.0 * known.error)
        if (uppers - known.values + 2.0 * known.error <= goal).all():
            break
    level, e = 1.0 if spanned else confidence, known.error
    return Eigenpairs(
        tuple(
            Estimate(v, v - e, u + e, level, a.matvecs, converged=u - v + 2.0 * e <= rtol * abs(v))
            for v, u in zip(known.values.tolist(), uppers.tolist(), strict=True)
        ),
        known.rows.T,
    )
