"""Lanczos: a random start, the block Krylov space with restarts, and the tridiagonal form."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from steppe._result import Rows
from steppe.linalg._operator import (
    Matrix,
    Matvec,
    Operator,
    Vector,
    count,
    dimension,
    generator,
    length,
    project,
    vector,
)
from steppe.linalg._probes import gaussian

# In a warm start, the norm of the random part over the norm of the known part. The bound of λ_max loses only a factor
# noise² of weight, worth a product or two; the Ritz value is second order in the noise.
NOISE = 0.1

# A pass that leaves this part of a vector leaves it orthogonal (Daniel, Gragg, Kaufman and Stewart 1976).
ENOUGH = 0.7

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Start:
    """A unit vector b whose weight on any fixed eigenvector is bounded below with known probability:
    b = x/‖x‖ with x = v + s g, g standard normal; `ratio` is s/‖x‖.

    For a fixed unit vector u, ⟨x, u⟩ = ⟨v, u⟩ + s⟨g, u⟩ and ⟨g, u⟩ is a standard normal, whose density is
    symmetric and unimodal: whatever v, P(|⟨x, u⟩| < s z) ≤ P(|g₁| < z) (Anderson 1955). So

        ⟨b, u⟩² ≥ τ(δ) = (s z/‖x‖)²  with probability ≥ 1 − δ,  where P(|g₁| < z) = δ.

    With v = 0 this is the quantile of ⟨b, u⟩² ~ Beta(1/2, (p − 1)/2), the weight of a uniformly random unit vector.
    """

    vector: Vector
    ratio: float

    def weight(self, delta: float) -> float:
        """τ(δ).

        >>> round(Start(np.ones(1), ratio=1.0).weight(0.6826895), 6)   # P(|g₁| < 1) = 0.6827
        1.0
        """
        return float((self.ratio * ndtri(0.5 + 0.5 * delta)) ** 2)


def start(
    p: int,
    *,
    warm: Vector | None = None,
    noise: float = NOISE,
    against: Matrix | None = None,
    key: np.random.Generator,
) -> Start:
    """A random start; with `warm` = v, that vector plus some noise.

    `against` holds orthonormal rows, along which the start has no component. `Start` holds for all u orthogonal to
    them.
    """
    g = gaussian(p, key)
    known = 0.0 if warm is None else float(np.linalg.norm(warm))
    s = noise * known / float(np.sqrt(p)) if known > 0.0 else 1.0
    x = s * g if warm is None else warm + s * g
    if against is not None and len(against):
        x = project(x, against)
    norm = float(np.linalg.norm(x))
    return Start(x / norm, s / norm)


def _reduce(W: Matrix, rows: Matrix, against: Matrix) -> None:
    """One pass of Gram-Schmidt, in place."""
    if len(against):
        W -= (W @ against.T) @ against
    W -= (W @ rows.T) @ rows


def _fresh(rows: Matrix, against: Matrix, key: np.random.Generator) -> Vector:
    """A random unit vector orthogonal to all rows; drawn again if it happens to lie in their span."""
    while True:
        row = gaussian(rows.shape[1], key)
        drawn = np.linalg.norm(row)
        for _ in range(3):
            _reduce(row[None], rows, against)
        left = np.linalg.norm(row)
        if left > 1e-6 * drawn:  # else the three passes leave mostly rounding
            return row / left


def extend(
    rows: Matrix, size: int, width: int, W: Matrix, *, floor: float, against: Matrix, key: np.random.Generator
) -> tuple[Matrix, int]:
    """Fills rows[size : size + width] with Q, orthonormal and orthogonal to `against` and rows[:size], such that
    W = C Q once W has no components along those. Returns C and the number of rows of Q that come from W.

    A direction shorter than `floor` counts as zero: a random one replaces it in Q, with zeros in C.

    >>> rows, none = np.eye(3), np.empty((0, 3))
    >>> C, found = extend(
    ...     rows, 1, 2, np.array([[5.0, 2.0, 0.0]]), floor=1e-9, against=none, key=np.random.default_rng(0)
    ... )
    >>> C.tolist(), found, np.abs(rows).tolist()
    ([[2.0, 0.0]], 1, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    """
    _reduce(W, rows[:size], against)
    C, found = np.zeros((len(W), width)), 0
    for i in range(len(W)):
        row, end = W[i : i + 1], size + found
        for j in range(found):
            C[i, j] = float(row[0] @ rows[size + j])
            row -= C[i, j] * rows[size + j]
        beta = length(row)
        if found == width or beta <= floor:
            continue
        # Cancellation may have left components along the basis as large as the residual itself.
        row /= beta
        _reduce(row, rows[:end], against)
        left = float(np.linalg.norm(row))
        if left > 1e-3:  # else it was rounding, all along the basis
            if left < ENOUGH:
                _reduce(row, rows[:end], against)
                left = float(np.linalg.norm(row))
            rows[end] = row[0] / left
            C[i, found] = beta
            found += 1
    for j in range(found, width):
        rows[size + j] = _fresh(rows[: size + j], against, key)
    return C, found


class Krylov:
    """Block Krylov decomposition with full reorthogonalisation and thick restart.

    A V = V H + Q B: V the basis (m vectors), H = VᵀAV, Q the next block of at most b vectors, [V Q] orthonormal.

    Vectors are rows of one float64 buffer of `capacity` + b rows, which bounds the memory. `expand` multiplies
    the block Q, one product a vector; b = 1 is Lanczos. `restart` keeps some Ritz vectors: the decomposition
    survives with H = diag(θ) and B rotated. For b = 1 it equals the one from the start ψ(A)b, where the polynomial ψ
    has the discarded Ritz values as `roots` (Wu and Simon 2000; Stewart 2001 for the form).

    With `against` = Y orthonormal, A is replaced by PAP, P = I − YYᵀ.

    >>> a = np.array([3.0, 1.0, 2.0])
    >>> k = Krylov(Operator(lambda v: a * v, 3), np.ones((1, 3)) / np.sqrt(3), capacity=3)
    >>> for _ in range(3): k.expand(np.random.default_rng(0))
    >>> k.ritz()[0].round(12).tolist(), k.exhausted
    ([1.0, 2.0, 3.0], True)
    """

    def __init__(self, a: Operator, block: Matrix, *, capacity: int, against: Matrix | None = None) -> None:
        self.a = a
        self.b = len(block)
        self.against = np.empty((0, a.p)) if against is None else against
        self.capacity = capacity
        self.rows = np.empty((capacity + self.b, a.p))
        self.rows[: self.b] = block
        self.size = 0  # m
        self.width = self.b  # rows of Q; fewer than b once the basis spans nearly the whole space
        self.H = np.zeros((capacity, capacity))
        self.B = np.zeros((self.b, capacity))
        self.products = 0
        self.skew = 0.0  # norm of the entries that symmetry makes zero: the visible part of the rounding
        self.broken = False  # span V is invariant to float64 rounding
        self.roots: list[float] = []
        self.log_beta = 0.0  # Σ log β for b = 1, each β plus the rounding of its product

    @property
    def room(self) -> int:
        """Dimension of the space that PAP acts on."""
        return self.a.p - len(self.against)

    @property
    def exhausted(self) -> bool:
        return self.size == self.room

    @property
    def full(self) -> bool:
        return self.size + self.width > self.capacity

    @property
    def basis(self) -> Matrix:
        return self.rows[: self.size]

    @property
    def next(self) -> Matrix:
        return self.rows[self.size : self.size + self.width]

    def onward(self) -> Vector:
        """PAv for the newest vector v of the basis."""
        last = self.size - 1
        return self.H[: self.size, last] @ self.basis + self.B[: self.width, last] @ self.next

    @property
    def scale(self) -> float:
        """A lower bound of ‖A‖, from all products of A: a chain `against` eigenvectors may see only rounding."""
        return self.a.scale

    @property
    def rounding(self) -> float:
        """‖E‖ such that the decomposition is exact for A + E: the errors F of the products have
        ‖F‖ ≤ √products · precision · ‖A‖, enter E = FVᵀ + VFᵀ twice, and their visible part is measured."""
        return float(2.0 * np.sqrt(self.products) * self.a.precision * self.scale + self.skew)

    def expand(self, rng: np.random.Generator) -> None:
        """Multiplies the next block; `rng` gives a fresh direction if the residual is zero."""
        m, w = self.size, self.width
        W = np.stack([self.a(q) for q in self.next])
        self.products += w
        if len(self.against):
            W -= (W @ self.against.T) @ self.against
        V = self.rows[: m + w]
        h = W @ V.T
        diagonal = 0.5 * (h[:, m:] + h[:, m:].T)
        unseen = np.hstack([h[:, :m] - self.B[:w, :m], h[:, m:] - diagonal])
        self.a.asymmetric(float(np.abs(unseen).max()))
        self.skew = float(np.hypot(self.skew, length(unseen)))
        self.H[m : m + w, :m] = self.B[:w, :m]
        self.H[:m, m : m + w] = self.B[:w, :m].T
        self.H[m : m + w, m : m + w] = diagonal
        W -= h @ V
        self.size = m + w
        self.width = min(self.b, self.room - self.size)
        # A residual below this is rounding, and its direction is meaningless.
        floor = 4.0 * EPS * self.scale
        C, found = extend(self.rows, self.size, self.width, W, floor=floor, against=self.against, key=rng)
        self.broken = found == 0
        self.B[:] = 0.0
        self.B[: self.width, m : m + w] = C.T
        if self.b == 1:
            self.log_beta += float(np.log(C.sum() + self.a.precision * self.scale + 1e-300))

    def ritz(self) -> tuple[Vector, Matrix, Matrix]:
        """Ritz values ascending, their vectors S in the basis (columns), and the residuals B S (columns)."""
        theta, S = np.linalg.eigh(self.H[: self.size, : self.size])
        return theta, S, self.B[: self.width, : self.size] @ S

    def restart(self, keep: np.ndarray) -> None:
        """Keeps the Ritz vectors at the positions `keep` of the ascending order."""
        theta, S, tail = self.ritz()
        m, k, S = self.size, len(keep), S[:, keep]
        self.roots += np.delete(theta, keep).tolist()
        upcoming = self.next.copy()
        for begin in range(0, self.a.p, 65536):  # in pieces, so that memory holds no second basis
            piece = slice(begin, begin + 65536)
            self.rows[:k, piece] = S.T @ self.rows[:m, piece]
        self.rows[k : k + self.width] = upcoming
        self.H[:] = 0.0
        self.H[range(k), range(k)] = theta[keep]
        self.B[:] = 0.0
        self.B[: self.width, :k] = tail[:, keep]
        self.size = k


@dataclass(frozen=True, eq=False, repr=False)
class Tridiagonal(Rows, index="step", columns=("alpha", "beta")):
    """A V = V T + β_k v_{k+1} e_kᵀ: diagonal α of T, off-diagonal β (the last entry is the residual β_k, 0 if the
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
    """`steps` Lanczos steps from `start`; each vector is made orthogonal to all before it, twice.

    Stops early if the space is invariant, with β = 0 at the end.

    >>> t = lanczos(lambda v: np.array([1.0, 3.0]) * v, 2, np.ones(2), steps=2)
    >>> t.alpha.round(12).tolist(), t.beta.round(12).tolist()
    ([2.0, 2.0], [1.0, 0.0])

    Paige 1972; Parlett, The Symmetric Eigenvalue Problem, chapter 13.
    """
    p = dimension(p)
    steps, start = count("steps", steps, p), vector("start", start, p)
    return tridiagonal(Operator(matvec, p, precision), start, steps)


def tridiagonal(a: Operator, start: Vector, steps: int) -> Tridiagonal:
    """`lanczos` on an operator that is checked already."""
    chain = Krylov(a, (start / np.linalg.norm(start))[None], capacity=steps)
    beta = []
    unused = generator(0)  # the chain ends before it draws a fresh direction
    while chain.size < steps:
        chain.expand(unused)
        beta.append(0.0 if chain.exhausted else float(chain.B[0, chain.size - 1]))
        if chain.broken:
            break
    k = chain.size
    return Tridiagonal(np.diag(chain.H[:k, :k]).copy(), np.array(beta), chain.basis.T)
