"""What is known of an operator on a subspace whose basis has been multiplied."""

from dataclasses import dataclass

import numpy as np

from steppe.linalg.arguments import Matrix, Vector
from steppe.linalg.krylov import Krylov
from steppe.linalg.operator import Operator


@dataclass(frozen=True, eq=False)
class Subspace:
    """A V = V H + R: orthonormal rows V, H = VᵀAV, residuals R (rows) orthogonal to V; `error` bounds the rounding.

    >>> a = Operator(lambda v: np.array([[2.0, 1.0], [1.0, 2.0]]) @ v, 2)
    >>> Subspace.multiplied(a, np.array([[1.0, 0.0]])).residuals.tolist()
    [[0.0, 1.0]]
    """

    rows: Matrix
    H: Matrix
    residuals: Matrix
    error: float

    @classmethod
    def multiplied(cls, a: Operator, rows: Matrix) -> "Subspace":
        """The span of the rows, one product each."""
        V = np.linalg.qr(rows.T)[0].T
        W = np.stack([a(v) for v in V])
        product = W @ V.T
        H = 0.5 * (product + product.T)
        skew = float(np.linalg.norm(product - H))
        a.asymmetric(skew)
        # As in Krylov.rounding.
        error = 2.0 * float(np.sqrt(len(V))) * a.precision * a.scale + skew
        return cls(V, H, W - product @ V, error)

    def extended(self, a: Operator, row: Vector) -> "Subspace":
        """With one more direction, orthogonal to V, at the price of one product.

        >>> a = Operator(lambda v: np.array([[2.0, 1.0], [1.0, 2.0]]) @ v, 2)
        >>> np.abs(Subspace.multiplied(a, np.array([[1.0, 0.0]])).extended(a, np.array([0.0, 3.0])).H).tolist()
        [[2.0, 1.0], [1.0, 2.0]]
        """
        more = Subspace.multiplied(a, row[None])
        (q,) = more.rows
        coupling = self.residuals @ q
        return Subspace(
            np.vstack([self.rows, q]),
            np.block([[self.H, coupling[:, None]], [coupling[None], more.H]]),
            np.vstack([self.residuals - np.outer(coupling, q), more.residuals - coupling @ self.rows]),
            self.error + more.error,
        )

    @property
    def values(self) -> Vector:
        return np.diag(self.H)

    @property
    def gram(self) -> Matrix:
        """G = RᵀR."""
        return self.residuals @ self.residuals.T

    def ritz(self, k: int) -> "Subspace":
        """The k leading Ritz vectors: H = diag(θ), descending."""
        theta, S = np.linalg.eigh(self.H)
        T = S[:, ::-1][:, :k].T
        return Subspace(T @ self.rows, np.diag(theta[::-1][:k]), T @ self.residuals, self.error)

    def joined(self, chain: Krylov, count: int) -> "Subspace":
        """With the `count` leading Ritz vectors of a chain in the complement of V (`against` V); no product."""
        theta, S, tail = chain.ritz()
        leading = slice(len(theta) - count, None)
        Q = S[:, leading].T @ chain.basis
        coupling = self.residuals @ Q.T
        return Subspace(
            np.vstack([self.rows, Q]),
            np.block([[self.H, coupling], [coupling.T, np.diag(theta[leading])]]),
            np.vstack([self.residuals - coupling @ Q, tail[:, leading].T @ chain.next]),
            self.error + chain.rounding,
        )
