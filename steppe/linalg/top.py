"""The k algebraically largest eigenpairs, each with a certified interval."""

from dataclasses import dataclass

import numpy as np

from steppe import check
from steppe.estimate import Estimate
from steppe.linalg.arguments import Matrix, count, dimension, generator, probability, tolerance
from steppe.linalg.block import ritz_pairs
from steppe.linalg.deflation import complement_upper, eigenvalue_upper
from steppe.linalg.krylov import Krylov
from steppe.linalg.operator import Matvec, Operator
from steppe.linalg.start import start
from steppe.linalg.subspace import Subspace


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
