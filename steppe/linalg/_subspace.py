"""Subspaces of eigenvectors: joint Ritz values, deflation, products that are out of date."""

from dataclasses import dataclass

import numpy as np

from steppe.linalg._certify import christoffel_upper
from steppe.linalg._lanczos import Krylov
from steppe.linalg._operator import Matrix, Operator, Vector
from steppe.linalg._probes import gaussian

# What is known of an operator on a subspace whose basis has been multiplied.


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


# The span of multiplied vectors and of a chain in their complement, in small matrices.


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

    >>> from steppe.linalg._operator import Operator
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


# Upper bounds for the leading eigenvalues from approximate eigenvectors and a bound on their complement.


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
    return christoffel_upper(weight, theta, residual[0], np.array(chain.roots), chain.log_beta)


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


# Rayleigh-Ritz with some products fresh and some of an earlier operator.


def blend(fresh: Joint, stale: Matrix, values: Vector, count: int) -> tuple[Vector, Matrix]:
    """The first `count` approximate eigenpairs of A (vectors as rows) on the span of `fresh` and of the orthonormal
    rows `stale`, of which only the ⟨s_i, A₀ s_j⟩ = values_i δ_ij of an earlier A₀ ≈ A are known.

    The couplings ⟨v, A s⟩ = ⟨R_v, s⟩ are exact, so a stale vector that begins to mix with a fresh one is seen
    although it was not multiplied. The leading Ritz pair of `fresh` stays first, as it is: what older products make of
    it is a guess. The others follow in descending order.

    >>> from steppe.linalg._lanczos import Krylov
    >>> from steppe.linalg._operator import Operator
    >>> from steppe.linalg._subspace import Subspace
    >>> A, e = np.array([[5.0, 0.0, 0.0], [0.0, 2.0, 1.0], [0.0, 1.0, 2.0]]), np.eye(3)  # A e₃ not known, was 2 e₃
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
    kept = length > 0.5  # what lies mostly in it is fresh already
    scaled = (U[:, kept] / np.sqrt(length[kept])).T
    coupling = T[:, 1:].T @ (scaled @ common).T
    # What is left of s_i A₀ s_j when the parts along the fresh space, which are known, are taken out.
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


# The k leading Ritz pairs by block Lanczos with thick restart.


def ritz_pairs(
    a: Operator, k: int, *, block: int, rtol: float, max_matvecs: int, basis: int, key: np.random.Generator
) -> Subspace:
    """k Ritz pairs, each residual ≤ rtol |θ| or at the level of rounding, within `max_matvecs` products.

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
