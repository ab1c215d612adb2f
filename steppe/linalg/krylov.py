"""Block Krylov decomposition with full reorthogonalisation and thick restart."""

import numpy as np

from steppe.linalg.arguments import Matrix, Vector
from steppe.linalg.extend import extend
from steppe.linalg.operator import Operator
from steppe.linalg.orthogonal import length

EPS = float(np.finfo(np.float64).eps)


class Krylov:
    """A V = V H + Q B: V the basis (m vectors), H = VᵀAV, Q the next block of at most b vectors, [V Q] orthonormal.

    Vectors are rows of one float64 buffer of `capacity` + b rows, which bounds the memory. `expand` multiplies
    the block Q, one product a vector; b = 1 is Lanczos. `restart` keeps some Ritz vectors: the decomposition
    survives with H = diag(θ) and B rotated, and for b = 1 equals the one from the start ψ(A)b whose polynomial ψ
    has the discarded Ritz values for `roots` (Wu and Simon 2000; Stewart 2001 for the form).

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
        self.width = self.b  # rows of Q, fewer when the whole space is nearly spanned
        self.H = np.zeros((capacity, capacity))
        self.B = np.zeros((self.b, capacity))
        self.products = 0
        self.skew = 0.0  # norm of what symmetry says is zero: the rounding that can be seen
        self.broken = False  # span V is invariant to float64 rounding
        self.roots: list[float] = []
        self.log_beta = 0.0  # Σ log β for b = 1, each β enlarged by what the rounded product can hide

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
        """PAv for the last vector v that was multiplied."""
        last = self.size - 1
        return self.H[: self.size, last] @ self.basis + self.B[: self.width, last] @ self.next

    @property
    def scale(self) -> float:
        """A lower bound of ‖A‖, from all products: a chain beside known eigenvectors may see nothing but rounding."""
        return self.a.scale

    @property
    def rounding(self) -> float:
        """‖E‖ such that the decomposition is exact for A + E: the errors F of the products have
        ‖F‖ ≤ √products · precision · ‖A‖, enter E = FVᵀ + VFᵀ twice, and their visible part is measured."""
        return float(2.0 * np.sqrt(self.products) * self.a.precision * self.scale + self.skew)

    def expand(self, rng: np.random.Generator) -> None:
        """Multiplies the next block; `rng` gives a fresh direction where the residual vanishes."""
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
        # A residual below this is rounding: its direction means nothing.
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
        for begin in range(0, self.a.p, 65536):  # in pieces, so that no second basis is allocated
            piece = slice(begin, begin + 65536)
            self.rows[:k, piece] = S.T @ self.rows[:m, piece]
        self.rows[k : k + self.width] = upcoming
        self.H[:] = 0.0
        self.H[range(k), range(k)] = theta[keep]
        self.B[:] = 0.0
        self.B[: self.width, :k] = tail[:, keep]
        self.size = k
