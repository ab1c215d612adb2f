"""The k algebraically largest eigenpairs of a symmetric operator, each with a certified interval."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from steppe import check
from steppe._result import Result, Table, columns, drawn
from steppe.estimate import Accuracy, Estimate
from steppe.linalg._extreme import EIGENVALUE
from steppe.linalg._lanczos import Krylov, start
from steppe.linalg._operator import Matrix, Matvec, Operator, count, dimension, generator
from steppe.linalg._probes import gaussian
from steppe.linalg._subspace import Subspace, complement_upper, eigenvalue_upper


@dataclass(frozen=True, eq=False, repr=False)
class Eigenpairs(Result):
    """Eigenvalues in descending order, each with its interval, and orthonormal vectors as columns (p × k)."""

    estimates: tuple[Estimate, ...]
    vectors: Matrix

    def table(self) -> Table:
        """One row for each eigenvalue, the largest first."""
        found = {"value": [e.value for e in self.estimates], "value.lower": [e.lower for e in self.estimates]}
        found |= {"value.upper": [e.upper for e in self.estimates]}
        return columns({"number": range(len(self.estimates))} | found)

    def draw(self) -> Any:
        return drawn("largest eigenvalues", self.table(), kind="points")


def top_eigenpairs(
    matvec: Matvec,
    p: int,
    k: int,
    *,
    block: int = 1,
    accuracy: Accuracy = EIGENVALUE,
    basis: int = 32,
    precision: float | None = None,
    key: int | np.random.Generator,
) -> Eigenpairs:
    """λ_1 ≥ … ≥ λ_k, with θ_i − e ≤ λ_i ≤ μ_i + e for all i together.

    First k Ritz pairs by (block) Lanczos; θ_i ≤ λ_i by Cauchy interlacing. Then a Lanczos chain from a fresh
    random start in their complement gives σ, the Christoffel bound of what was missed, and μ_i follows from σ
    and the residuals (see `eigenvalue_upper`). A copy of a multiple eigenvalue that the first run cannot see
    appears in the chain; it joins the pairs, and the complement is searched again. `block` > 1 sees `block` copies
    at once: make it as large as the cluster. Stops after `accuracy.max_matvecs` products; the upper ends are infinite
    if those end before the first search.

    >>> d = np.array([7.0, 7.0, 3.0, 1.0, 0.0, -9.0])
    >>> [round(e.value, 9) for e in top_eigenpairs(lambda v: d * v, 6, 3, key=0).estimates]
    [7.0, 7.0, 3.0]

    Parlett, The Symmetric Eigenvalue Problem, chapters 10 and 13; Wu and Simon 2000.
    """
    Accuracy.expected(accuracy)
    p, rtol = dimension(p), accuracy.rtol
    k, block = count("k", k, p), count("block", block, p)
    remedy = "Each pair takes a product."
    max_matvecs = check.integer("max_matvecs", accuracy.max_matvecs, minimum=k + block, remedy=remedy)
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
        share = 0.5 * accuracy.delta / (attempt * (attempt + 1))
        chain, sigma, found = _search(a, known, accuracy=accuracy, delta=share, basis=basis, key=rng)
        joint = known.joined(chain, found)
        known, spanned = joint.ritz(k), chain.exhausted
        uppers = np.minimum(uppers, [eigenvalue_upper(i, joint, sigma) for i in range(k)])
        uppers = np.maximum(uppers, known.values)
        # Closer than a few times the rounding no further search can bring them.
        goal = np.maximum(rtol * np.abs(known.values), 8.0 * known.error)
        if (uppers - known.values + 2.0 * known.error <= goal).all():
            break
    level, e = 1.0 if spanned else accuracy.confidence, known.error
    return Eigenpairs(
        tuple(
            Estimate(v, v - e, u + e, level, a.matvecs, converged=u - v + 2.0 * e <= rtol * abs(v))
            for v, u in zip(known.values.tolist(), uppers.tolist(), strict=True)
        ),
        known.rows.T,
    )


def ritz_pairs(
    a: Operator, k: int, *, block: int, rtol: float, max_matvecs: int, basis: int, key: np.random.Generator
) -> Subspace:
    """k Ritz pairs by block Lanczos with thick restart, each residual ≤ rtol |θ| or at the level of rounding, within
    `max_matvecs` products.

    A random start of b vectors sees b copies of a multiple eigenvalue where one vector sees one, and a cluster
    of b eigenvalues converges at the rate of the gap below it.

    >>> d = np.array([2.0, 2.0, 1.0, 0.0])
    >>> a, rng = Operator(lambda v: d * v, 4), np.random.default_rng(0)
    >>> ritz_pairs(a, 2, block=2, rtol=1e-3, max_matvecs=9, basis=4, key=rng).values.round(9).tolist()
    [2.0, 2.0]

    Golub and Underwood 1977.
    """
    random = np.stack([gaussian(a.p, key) for _ in range(block)])
    space = Krylov(a, np.linalg.qr(random.T)[0].T, capacity=min(basis, a.p))
    while True:
        space.expand(key)
        theta, S, tail = space.ritz()
        theta, S, tail = theta[::-1][:k], S[:, ::-1][:, :k], tail[:, ::-1][:, :k]
        if space.size >= k:
            goal = np.maximum(rtol * np.abs(theta), space.rounding)
            small = bool((np.linalg.norm(tail, axis=0) <= goal).all())
            if small or space.exhausted or a.matvecs + space.width > max_matvecs:
                break
        if space.full:
            space.restart(np.arange(space.size - max(k, space.capacity // 2), space.size))
    return Subspace(S.T @ space.basis, np.diag(theta), tail.T @ space.next, space.rounding)


def _search(
    a: Operator, known: Subspace, *, accuracy: Accuracy, delta: float, basis: int, key: np.random.Generator
) -> tuple[Krylov, float, int]:
    """A Lanczos chain in the complement of the known pairs, until σ shows that nothing above the last one was
    missed, or until a missed pair has as small a residual as they have; the chain, σ and the number of missed pairs."""
    first, rtol = start(a.p, against=known.rows, key=key), accuracy.rtol
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
        # An unbroken row of pairs from the top: above an inaccurate pair another one could still be missed.
        found = int(np.argmin(np.append(above[::-1], False)))
        absent = sigma <= last + max(0.5 * width - 2.0 * error, error)
        if absent or found or chain.broken or a.matvecs >= accuracy.max_matvecs:
            return chain, sigma, found
        if chain.full:
            chain.restart(np.arange(chain.size - max(1, chain.capacity // 2), chain.size))
