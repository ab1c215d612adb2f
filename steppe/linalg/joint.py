"""The span of multiplied vectors and of a chain in their complement, in small matrices."""

from dataclasses import dataclass

import numpy as np

from steppe.linalg.arguments import Matrix, Vector
from steppe.linalg.krylov import Krylov
from steppe.linalg.subspace import Subspace


@dataclass(frozen=True, eq=False)
class Projection:
    """H = VᵀAV and G = RᵀR of A V = V H + R: all that bounds of eigenvalues need to know."""

    H: Matrix
    gram: Matrix

    @property
    def values(self) -> Vector:
        return np.diag(self.H)

    def ritz(self, k: int) -> "Projection":
        """On the k leading Ritz vectors, H = diag(θ), descending.

        >>> Projection(np.diag([1.0, 2.0]), np.diag([3.0, 4.0])).ritz(1).gram.tolist()
        [[4.0]]
        """
        theta, S = np.linalg.eigh(self.H)
        T = S[:, ::-1][:, :k]
        return Projection(np.diag(theta[::-1][:k]), T.T @ self.gram @ T)


class Joint:
    """What `known.joined(chain, n)` knows, at every length of the chain, without its long vectors.

    `grow` after each `chain.expand` goes once over the residuals; the rest is done in matrices of a few rows.

    >>> from steppe.linalg.operator import Operator
    >>> a = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 3.0]])
    >>> operator, e = Operator(lambda v: a @ v, 3), np.eye(3)
    >>> known = Subspace.multiplied(operator, e[:1])
    >>> joint = Joint(known, Krylov(operator, e[1:2], capacity=2, against=known.rows))
    >>> joint.grow(np.random.default_rng(0))
    >>> np.abs(joint.projection(1).H).tolist(), joint.projection(1).gram.tolist()
    ([[2.0, 1.0], [1.0, 2.0]], [[0.0, 0.0], [0.0, 1.0]])
    """

    def __init__(self, known: Subspace, chain: Krylov) -> None:
        self.known, self.chain = known, chain
        self._gram = known.gram
        self._along = known.residuals @ chain.next.T  # ⟨R, q⟩ for each q of the chain and the next ones

    def grow(self, rng: np.random.Generator) -> None:
        """Multiplies what is next in the chain."""
        self.chain.expand(rng)
        self._along = np.hstack([self._along, self.known.residuals @ self.chain.next.T])

    def projection(self, count: int) -> Projection:
        """On V and the `count` leading Ritz vectors of the chain."""
        theta, S, tail = self.chain.ritz()
        leading = slice(len(theta) - count, None)
        coupling, tail = self._along[:, : len(theta)] @ S[:, leading], tail[:, leading]
        # R loses what lies along those Ritz vectors; what it has in common with their residuals lies along next.
        left, common = self._gram - coupling @ coupling.T, self._along[:, len(theta) :] @ tail
        return Projection(
            np.block([[self.known.H, coupling], [coupling.T, np.diag(theta[leading])]]),
            np.block([[left, common], [common.T, tail.T @ tail]]),
        )

    @property
    def error(self) -> float:
        return self.known.error + self.chain.rounding

    def along(self, rows: Matrix) -> tuple[Matrix, Matrix]:
        """The components of other rows along V and the chain's basis, and what they have in common with the residuals
        of `projection(chain.size)` outside of these."""
        V, R, m = self.known.rows, self.known.residuals, self.chain.size
        _, S, tail = self.chain.ritz()
        inside = rows @ self.chain.basis.T
        common = rows @ R.T - inside @ self._along[:, :m].T
        return np.hstack([rows @ V.T, inside @ S]), np.hstack([common, (rows @ self.chain.next.T) @ tail])

    def combined(self, coefficients: Matrix) -> Matrix:
        """Sums of the rows of V and of the Ritz vectors of the chain."""
        _, S, _ = self.chain.ritz()
        head, tail = np.split(coefficients, [len(self.known.rows)], axis=1)
        rows: Matrix = head @ self.known.rows
        rows += (tail @ S.T) @ self.chain.basis
        return rows
