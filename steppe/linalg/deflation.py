"""Upper bounds for the leading eigenvalues from approximate eigenvectors and a bound on their complement."""

import numpy as np

from steppe.linalg import christoffel
from steppe.linalg.arguments import Matrix, Vector
from steppe.linalg.krylov import Krylov


def eigenvalue_upper(i: int, H: Matrix, G: Matrix, sigma: float) -> float:
    """An upper bound for the i-th largest eigenvalue of A (i = 0, 1, …), given an orthonormal basis V with
    H = VᵀAV, G = RᵀR for the residual R = (I − VVᵀ)AV, and uᵀAu ≤ σ for all unit u orthogonal to V.

    In the basis (V, V⊥), A = [[H, R'ᵀ], [R', C]] with C ≤ σ. For μ > σ the inertia of A − μ is that of C − μ
    (negative) and of the Schur complement H − μ + R'ᵀ(μ − C)⁻¹R' ≤ H − μ + G/(μ − σ). So A has at most i
    eigenvalues above μ as soon as λ_i(H + G/(μ − σ)) ≤ μ.

    >>> H, G = np.array([[3.0]]), np.array([[1.0]])   # A = [[3, 1], [1, 3]] has λ_max = 4
    >>> round(eigenvalue_upper(0, H, G, sigma=3.0), 9)
    4.0
    """
    theta = float(np.linalg.eigvalsh(H)[-1 - i])
    rho = float(np.sqrt(np.linalg.norm(G, 2)))
    # Weyl: with μ − σ ≥ ρ the correction G/(μ − σ) is at most ρ.
    low, high = max(theta, sigma), max(theta, sigma) + rho
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high or high - low <= 1e-4 * (high - theta):
            return high
        if np.linalg.eigvalsh(H + G / (middle - sigma))[-1 - i] <= middle:
            high = middle
        else:
            low = middle


def complement_upper(chain: Krylov, weight: float) -> float:
    """σ ≥ λ_max of A on the complement of V = [Y, Q], from a Lanczos chain `against` Y whose start has that weight.

    Nothing is outside a chain that spans the complement of Y: σ = −∞.
    """
    if chain.exhausted:
        return -np.inf
    theta, _, residual = chain.ritz()
    if chain.scale == 0.0:
        return 0.0
    return christoffel.upper(weight, theta, residual[0], np.array(chain.roots), chain.log_beta)


class Deflated:
    """V = [Y, Q]: orthonormal rows Y with A Y = Y H + R, and the `count` leading Ritz vectors Q of a Lanczos chain
    in the complement of Y. The complement of V lies in that of Y, so a bound σ from the chain holds for it too.
    """

    def __init__(self, Y: Matrix, H: Matrix, R: Matrix, chain: Krylov, count: int) -> None:
        theta, S, tail = chain.ritz()
        leading = slice(len(theta) - count, None)
        Q = S[:, leading].T @ chain.basis
        coupling = R @ Q.T
        self.rows = np.vstack([Y, Q])
        self.H = np.block([[H, coupling], [coupling.T, np.diag(theta[leading])]])
        self.residuals = np.vstack([R - coupling @ Q, tail[:, leading].T @ chain.next])

    def gram(self) -> Matrix:
        return self.residuals @ self.residuals.T

    def ritz(self, k: int) -> tuple[Vector, Matrix, Matrix]:
        """The k largest Ritz values descending, their vectors and residuals (rows)."""
        theta, S = np.linalg.eigh(self.H)
        T = S[:, ::-1][:, :k].T
        return theta[::-1][:k], T @ self.rows, T @ self.residuals
