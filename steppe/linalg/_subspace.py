"""Subspaces with known products: Ritz values, eigenvalue bounds, and a blend with products of an older operator."""

from dataclasses import dataclass

import numpy as np

from steppe.linalg._bounds import Christoffel
from steppe.linalg._lanczos import Krylov
from steppe.linalg._operator import Matrix, Operator, Vector


@dataclass(frozen=True, eq=False)
class Subspace:
    """The span of vectors with known products: A V = V H + R, orthonormal rows V, H = VᵀAV, residuals R (rows)
    orthogonal to V; `error` bounds the rounding.

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
        """With one more direction, orthogonal to V; one product.

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


@dataclass(frozen=True, eq=False)
class Projection:
    """H = VᵀAV and G = RᵀR of A V = V H + R: enough for bounds of eigenvalues."""

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
    """The projection of `known.joined(chain, n)` for every n, without new long vectors.

    `grow` reads the residuals once for each product; everything else uses matrices of a few rows.

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
        """Multiplies the next vector of the chain."""
        self.chain.expand(rng)
        self._along = np.hstack([self._along, self.known.residuals @ self.chain.next.T])

    def projection(self, count: int) -> Projection:
        """The projection on V and the `count` leading Ritz vectors of the chain."""
        theta, S, tail = self.chain.ritz()
        leading = slice(len(theta) - count, None)
        coupling, tail = self._along[:, : len(theta)] @ S[:, leading], tail[:, leading]
        # R loses its part along those Ritz vectors. Their residuals lie along `next`, and so does the common part.
        left, common = self._gram - coupling @ coupling.T, self._along[:, len(theta) :] @ tail
        return Projection(
            np.block([[self.known.H, coupling], [coupling.T, np.diag(theta[leading])]]),
            np.block([[left, common], [common.T, tail.T @ tail]]),
        )

    @property
    def error(self) -> float:
        return self.known.error + self.chain.rounding

    def along(self, rows: Matrix) -> tuple[Matrix, Matrix]:
        """The components of other rows along V and the chain's Ritz vectors, and their products with the residuals of
        `projection(chain.size)`."""
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


def complement_upper(chain: Krylov, weight: float) -> float:
    """σ ≥ λ_max of A on the complement of [V, Q], from a Lanczos chain `against` V whose start has this weight on
    the leading eigenvector there; Q is any part of the chain. If the chain spans the complement, σ = −∞.
    """
    if chain.exhausted:
        return -np.inf
    if chain.scale == 0.0:
        return 0.0
    return Christoffel.of(chain).upper(weight)


def eigenvalue_upper(i: int, known: Subspace | Projection, sigma: float) -> float:
    """An upper bound of the i-th largest eigenvalue of A (i = 0, 1, …), given A V = V H + R and uᵀAu ≤ σ for
    all unit u orthogonal to V; without the rounding.

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


def blend(fresh: Joint, stale: Matrix, values: Vector, count: int) -> tuple[Vector, Matrix]:
    """Rayleigh-Ritz with some products fresh and some of an earlier operator: the first `count` approximate eigenpairs
    of A (vectors as rows) on the span of `fresh` and of the orthonormal rows `stale`. For the latter only the products
    ⟨s_i, A₀ s_j⟩ = values_i δ_ij of an earlier A₀ ≈ A are known.

    The couplings ⟨v, A s⟩ = ⟨R_v, s⟩ are exact: they show when a stale vector begins to mix with a fresh one, although
    it has no new product. The leading Ritz pair of `fresh` stays first and unchanged, because older products would
    make it a guess. The others follow in descending order.

    >>> A, e = np.array([[5.0, 0.0, 0.0], [0.0, 2.0, 1.0], [0.0, 1.0, 2.0]]), np.eye(3)  # A e₃ unknown, was 2 e₃
    >>> a, rng = Operator(lambda v: A @ v, 3), np.random.default_rng(0)
    >>> known = Subspace.multiplied(a, e[:1])
    >>> joint = Joint(known, Krylov(a, e[1:2], capacity=2, against=known.rows))
    >>> joint.grow(rng)
    >>> blend(joint, e[2:], np.array([2.0]), 3)[0].round(9).tolist()
    [5.0, 3.0, 1.0]
    """
    H = fresh.projection(fresh.chain.size).H
    theta, T = np.linalg.eigh(H)
    theta, T = theta[::-1], T[:, ::-1]
    inside, common = fresh.along(stale)
    length, U = np.linalg.eigh(stale @ stale.T - inside @ inside.T)  # sin² of the angles to the fresh space
    kept = length > 0.5  # a vector mostly inside the fresh space adds nothing to it
    scaled = (U[:, kept] / np.sqrt(length[kept])).T
    coupling = T[:, 1:].T @ (scaled @ common).T
    # s_i A₀ s_j without the parts along the fresh space, which are known.
    across = inside @ common.T
    outer = np.diag(values) - inside @ H @ inside.T - across - across.T
    block = scaled @ outer @ scaled.T
    others, X = np.linalg.eigh(np.block([[np.diag(theta[1:]), coupling], [coupling.T, block]]))
    X = X[:, ::-1][:, : count - 1].T
    part = X[:, len(theta) - 1 :] @ scaled
    first = np.eye(1, len(theta))
    coefficients = np.vstack([first, np.pad(X[:, : len(theta) - 1], ((0, 0), (1, 0)))]) @ T.T
    coefficients[1:] -= part @ inside
    rows = fresh.combined(coefficients)
    rows[1:] += part @ stale
    return np.append(theta[:1], others[::-1])[:count], rows
