"""The dense twins of the algorithms of `steppe.linalg`: slow, obvious, exact up to rounding."""

import numpy as np

from steppe.estimate import Estimate
from steppe.linalg._density import smoothed
from steppe.linalg._operator import Matrix, Matvec, Operator, Vector, count, dimension

__all__ = [
    "density",
    "diagonal",
    "eigenvalues",
    "lanczos",
    "largest",
    "matrix",
    "smallest",
    "spectral_norm",
    "top_eigenpairs",
    "trace",
]


def __dir__() -> list[str]:
    return list(__all__)


def matrix(matvec: Matvec, p: int, *, precision: float | None = None) -> Matrix:
    """A itself, column by column: p products.

    >>> matrix(lambda v: np.array([2.0, 3.0]) * v, 2).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    a = Operator(matvec, dimension(p), precision)
    columns = np.stack([a(e) for e in np.eye(p)], axis=1)
    a.asymmetric(float(np.abs(columns - columns.T).max()))
    return 0.5 * (columns + columns.T)


def eigenvalues(A: Matrix) -> Vector:
    """Descending."""
    return np.flip(np.linalg.eigvalsh(A)).astype(np.float64)


def largest(A: Matrix) -> Estimate:
    """λ_max.

    >>> largest(np.array([[0.0, 2.0], [2.0, 0.0]])).value
    2.0
    """
    return Estimate.exact(eigenvalues(A)[0])


def smallest(A: Matrix) -> Estimate:
    """λ_min."""
    return Estimate.exact(eigenvalues(A)[-1])


def spectral_norm(A: Matrix) -> Estimate:
    """max |λ|."""
    return Estimate.exact(np.abs(eigenvalues(A)).max())


def top_eigenpairs(A: Matrix, k: int) -> tuple[Vector, Matrix]:
    """The k largest eigenvalues, descending, and their eigenvectors (columns)."""
    values, vectors = np.linalg.eigh(A)
    k = count("k", k, len(A))
    return values[::-1][:k], vectors[:, ::-1][:, :k]


def trace(A: Matrix) -> Estimate:
    return Estimate.exact(np.trace(A))


def diagonal(A: Matrix) -> Vector:
    return np.diag(A).copy()


def density(A: Matrix, grid: Vector, width: float) -> Vector:
    """Σ_i exp(−(x − λ_i)²/2h²)/(√(2π) h p)."""
    values = eigenvalues(A)
    return smoothed(grid, values, np.full(len(values), 1.0 / len(values)), width)


def lanczos(A: Matrix, start: Vector, steps: int) -> tuple[Vector, Vector]:
    """α and β (without β_k) from a QR factorisation of the Krylov matrix with scaled columns, which is well
    conditioned for a few steps only."""
    columns, steps = [start / np.linalg.norm(start)], count("steps", steps, len(A))
    for _ in range(steps - 1):
        v = A @ columns[-1]
        columns.append(v / np.linalg.norm(v))
    Q = np.linalg.qr(np.stack(columns, axis=1))[0]
    T = Q.T @ A @ Q
    return np.diag(T).copy(), np.abs(np.diag(T, 1))
