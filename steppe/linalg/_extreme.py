"""The largest eigenvalue, the smallest and the spectral norm of a symmetric operator, with certified intervals."""

from dataclasses import dataclass, replace

import numpy as np

from steppe import check
from steppe._result import Rows
from steppe.estimate import Accuracy, Estimate
from steppe.linalg._bounds import Christoffel
from steppe.linalg._lanczos import Krylov
from steppe.linalg._lanczos import start as random_start
from steppe.linalg._operator import Matvec, Operator, Vector, dimension, generator, vector

# The accuracy of an eigenvalue unless the caller states another one.
EIGENVALUE = Accuracy(1e-3)


@dataclass(frozen=True, eq=False, repr=False)
class Eigenpair(Rows, index="entry", columns=("vector",)):
    """An eigenvalue with its interval, and the unit Ritz vector that attains `estimate.value`."""

    estimate: Estimate
    vector: Vector


def largest(
    matvec: Matvec,
    p: int,
    *,
    accuracy: Accuracy = EIGENVALUE,
    settle: float | None = None,
    basis: int = 32,
    start: Vector | None = None,
    precision: float | None = None,
    key: int | np.random.Generator,
) -> Eigenpair:
    """λ_max(A), the algebraically largest eigenvalue, with θ − e ≤ λ_max ≤ μ + e.

    θ is the largest Ritz value of Lanczos, e its rounding (see `Krylov.rounding`), and μ > θ solves
    τ Σ_j φ_j(μ)² = 1 (see `Christoffel`): the random start has weight τ on the eigenvector with probability
    `accuracy.confidence` (see `Start`). The bound tightens as fast as Lanczos converges, and holds through restarts.

    Stops when upper − lower ≤ rtol |θ|, after `accuracy.max_matvecs` products at the latest. With `settle` it stops
    earlier, when the estimated error of θ itself is below settle |θ|; then `converged` says whether the interval has
    the width rtol. `start` is an approximate eigenvector; it brings the value sooner, not the bound, which must rule
    out all other directions. `basis` is the number of vectors held, `precision` the relative error of a product.
    p = 1 and the zero operator are exact; a spanned space is exact up to rounding, with confidence 1.

    >>> d = np.array([-5.0, 0.0, 1.0, 4.0])
    >>> round(largest(lambda v: d * v, 4, key=0).estimate.value, 9)
    4.0

    Kuczyński and Woźniakowski 1992 for the random start; Wu and Simon 2000 for the restart.
    """
    estimate, chain = certified(
        matvec, p, signs=(1.0,), accuracy=accuracy, settle=settle, basis=basis, start=start, precision=precision,
        key=key,
    )  # fmt: skip
    return Eigenpair(estimate, chain.ritz()[1][:, -1] @ chain.basis)


def smallest(
    matvec: Matvec,
    p: int,
    *,
    accuracy: Accuracy = EIGENVALUE,
    settle: float | None = None,
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
        matvec, p, signs=(-1.0,), accuracy=accuracy, settle=settle, basis=basis, start=start, precision=precision,
        key=key,
    )  # fmt: skip
    turned = replace(e, value=-e.value, lower=-e.upper, upper=-e.lower)
    return Eigenpair(turned, chain.ritz()[1][:, 0] @ chain.basis)


def spectral_norm(
    matvec: Matvec,
    p: int,
    *,
    accuracy: Accuracy = EIGENVALUE,
    settle: float | None = None,
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
        matvec, p, signs=(1.0, -1.0), accuracy=accuracy, settle=settle, basis=basis, start=start, precision=precision,
        key=key,
    )  # fmt: skip
    theta, S, _ = chain.ritz()
    return Eigenpair(estimate, S[:, int(np.argmax(np.abs(theta)))] @ chain.basis)


def certified(
    matvec: Matvec,
    p: int,
    *,
    signs: tuple[float, ...],
    accuracy: Accuracy,
    settle: float | None,
    basis: int,
    start: Vector | None,
    precision: float | None,
    key: int | np.random.Generator,
) -> tuple[Estimate, Krylov]:
    """max over `signs` s of λ_max(sA), with the chain that found it: (+1) the largest eigenvalue, (−1) minus the
    smallest, both ‖A‖. The arguments are those of `largest`."""
    Accuracy.expected(accuracy)
    p, rtol = dimension(p), accuracy.rtol
    settle = -1.0 if settle is None else check.number("settle", settle, above=0.0)
    basis = check.integer("basis", basis, minimum=4, remedy="Thick restart keeps half of at least four vectors.")
    warm = None if start is None else vector("start", start, p)
    rng, a = generator(key), Operator(matvec, p, precision)
    first = random_start(p, warm=warm, key=rng)
    # Half of δ: the bound is sharp, and the model of the rounding holds with high probability only.
    weight = first.weight(0.5 * accuracy.delta)
    chain = Krylov(a, first.vector[None], capacity=min(basis, p))
    bound = np.inf
    while True:
        chain.expand(rng)
        sides = [Christoffel.of(chain, sign) for sign in signs]
        value, pad = max(side.top for side in sides), chain.rounding
        certain = chain.exhausted or chain.scale == 0.0
        # Closer than the rounding no further product can bring the bound.
        target = value + max(rtol * abs(value) - 2.0 * pad, pad)
        reached = not certain and all(side.excludes(target, weight) for side in sides)
        leading = max(sides, key=lambda side: side.top)
        unlucky = not certain and leading.unlucky(weight)
        if unlucky:
            reached = reached and leading.error() <= rtol * abs(value)
        done = reached or certain or chain.broken or a.matvecs >= accuracy.max_matvecs
        done = done or leading.error() <= settle * abs(value)
        if done or chain.full:
            # One event, ⟨b, u⟩² ≥ weight, carries the bounds of all steps: the smallest of them holds.
            bound = min(bound, value if certain else max(side.upper(weight) for side in sides))
        if done:
            break
        if chain.full:
            chain.restart(_kept(chain, signs))
    if unlucky:
        # Only the error estimate is left: the interval has the requested width, apart from rounding.
        bound = value + 0.99 * (target - value) if reached else np.inf
    bound = max(value, min(bound, target) if reached else bound)
    # The product of a p = 1 operator is its only entry: there is nothing to round.
    pad = 0.0 if p == 1 else pad
    lower, upper = float(value - pad), float(bound + pad)
    level = 1.0 if certain else accuracy.confidence
    return Estimate(value, lower, upper, level, a.matvecs, converged=upper - lower <= rtol * abs(value)), chain


def _kept(chain: Krylov, signs: tuple[float, ...]) -> np.ndarray:
    """The positions of half of the Ritz vectors, from the ends of the spectrum that `signs` names."""
    half = chain.capacity // 2
    bottom = half * signs.count(-1.0) // len(signs)
    return np.delete(np.arange(chain.size), np.arange(bottom, chain.size - (half - bottom)))
