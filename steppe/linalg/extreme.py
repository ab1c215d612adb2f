"""The largest eigenvalue, the smallest and the spectral norm of a symmetric operator, with certified intervals."""

from dataclasses import dataclass, replace

import numpy as np

from steppe.estimate import Estimate
from steppe.linalg.arguments import Vector
from steppe.linalg.certify import certified
from steppe.linalg.operator import Matvec


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
