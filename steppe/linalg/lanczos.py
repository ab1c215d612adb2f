"""The Lanczos tridiagonalisation itself."""

from dataclasses import dataclass

import numpy as np

from steppe.linalg.arguments import Matrix, Vector, count, dimension, generator, vector
from steppe.linalg.krylov import Krylov
from steppe.linalg.operator import Matvec, Operator


@dataclass(frozen=True, eq=False)
class Tridiagonal:
    """A V = V T + β_k v_{k+1} e_kᵀ: diagonal α of T, off-diagonal β (the last entry is the residual β_k, 0 where the
    space is invariant), orthonormal columns V (p × k)."""

    alpha: Vector
    beta: Vector
    basis: Matrix

    def quadrature(self) -> tuple[Vector, Vector]:
        """Nodes and weights of Gauss quadrature for the spectral measure of the start: Ritz values, squared first
        components (Golub and Welsch 1969)."""
        T = np.diag(self.alpha) + np.diag(self.beta[:-1], 1) + np.diag(self.beta[:-1], -1)
        theta, S = np.linalg.eigh(T)
        return theta, S[0] ** 2


def lanczos(matvec: Matvec, p: int, start: Vector, *, steps: int, precision: float | None = None) -> Tridiagonal:
    """`steps` Lanczos steps from `start`, every vector orthogonalised twice against all before it.

    Stops early where the space is invariant, with β = 0 there.

    >>> t = lanczos(lambda v: np.array([1.0, 3.0]) * v, 2, np.ones(2), steps=2)
    >>> t.alpha.round(12).tolist(), t.beta.round(12).tolist()
    ([2.0, 2.0], [1.0, 0.0])

    Paige 1972; Parlett, The Symmetric Eigenvalue Problem, chapter 13.
    """
    p = dimension(p)
    steps, start = count("steps", steps, p), vector("start", start, p)
    return tridiagonal(Operator(matvec, p, precision), start, steps)


def tridiagonal(a: Operator, start: Vector, steps: int) -> Tridiagonal:
    chain = Krylov(a, (start / np.linalg.norm(start))[None], capacity=steps)
    beta = []
    unused = generator(0)  # the chain ends where a fresh direction would be drawn
    while chain.size < steps:
        chain.expand(unused)
        beta.append(0.0 if chain.exhausted else float(chain.B[0, chain.size - 1]))
        if chain.broken:
            break
    k = chain.size
    return Tridiagonal(np.diag(chain.H[:k, :k]).copy(), np.array(beta), chain.basis.T)
