"""Upper bounds for the leading eigenvalues from approximate eigenvectors and a bound on their complement."""

import numpy as np

from steppe.linalg import christoffel
from steppe.linalg.joint import Projection
from steppe.linalg.krylov import Krylov
from steppe.linalg.subspace import Subspace


def complement_upper(chain: Krylov, weight: float) -> float:
    """σ ≥ λ_max of A on the complement of [V, Q], from a Lanczos chain `against` V whose start has that weight on
    the leading eigenvector there; Q is any part of the chain. A chain that spans the complement leaves nothing
    outside: σ = −∞.
    """
    if chain.exhausted:
        return -np.inf
    if chain.scale == 0.0:
        return 0.0
    theta, _, residual = chain.ritz()
    return christoffel.upper(weight, theta, residual[0], np.array(chain.roots), chain.log_beta)


def eigenvalue_upper(i: int, known: Subspace | Projection, sigma: float) -> float:
    """An upper bound for the i-th largest eigenvalue of A (i = 0, 1, …), given A V = V H + R and uᵀAu ≤ σ for
    all unit u orthogonal to V; rounding not included.

    In the basis (V, V⊥), A = [[H, Rᵀ], [R, C]] with C ≤ σ. For μ > σ the inertia of A − μ is that of C − μ
    (negative) and of the Schur complement H − μ + Rᵀ(μ − C)⁻¹R ≤ H − μ + G/(μ − σ), G = RᵀR. So A has at most
    i eigenvalues above μ as soon as the i-th largest one of H + G/(μ − σ) is ≤ μ.

    >>> known = Subspace(np.eye(2)[:1], np.array([[3.0]]), np.eye(2)[1:], 0.0)   # of A = [[3, 1], [1, 3]]
    >>> round(eigenvalue_upper(0, known, sigma=3.0), 3)
    4.0
    """
    H, G = known.H, known.gram
    theta = float(np.linalg.eigvalsh(H)[-1 - i])
    # Weyl: with μ − σ ≥ ρ = ‖R‖ the correction G/(μ − σ) is at most ρ.
    low = max(theta, sigma)
    high = low + float(np.sqrt(np.linalg.norm(G, 2)))
    while high - low > 1e-4 * (high - theta):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if np.linalg.eigvalsh(H + G / (middle - sigma))[-1 - i] <= middle:
            high = middle
        else:
            low = middle
    return high
