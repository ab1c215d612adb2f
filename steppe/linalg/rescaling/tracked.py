"""min over t of λ_max(M(t)) for many rows: only the top eigenvectors are tracked, and the bound stays a proof."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from steppe.linalg.rescaling.compressed import compressed
from steppe.linalg.rescaling.rescaling import Floats, Rescaling
from steppe.linalg.rescaling.solve import flattest

# New vectors a round, powers of M a round, vectors carried over, and rounds.
_BLOCK, _DEPTH, _KEPT, _ROUNDS = 12, 2, 36, 40


class Jacobian(Protocol):
    """B (N, parameters), known by its products with blocks."""

    @property
    def rows(self) -> int: ...

    def pull(self, V: Floats) -> Floats:
        """BᵀV, (parameters, r)."""
        ...

    def push(self, Y: Floats) -> Floats:
        """BY, (N, r)."""
        ...


@dataclass(frozen=True, eq=False)
class Tracked:
    """`ritz` ≤ λ_max(M(t)) with the unit vector that attains it, and `lower`, below which no t is."""

    t: Floats
    ritz: float
    vector: Floats
    lower: float


def tracked(B: Jacobian, A: csr_array, start: Floats, *, rtol: float, key: int = 0) -> Tracked:
    """The flattest rescaling from `start` on, to a relative gap of `rtol` between Ritz value and bound.

    For orthonormal V the matrix VᵀM(t)V = Σ_k e^{−2(At)_k} (Vᵀj_k)(Vᵀj_k)ᵀ is that of a problem with few rows, and
    λ_max(VᵀMV) ≤ λ_max(M) for every t: its certified minimum bounds the whole problem from below. Its minimiser is
    the next t, and the top eigenvectors of M(t) join V. That is a bundle method whose pieces are not planes but
    convex functions that bend as λ_max does; so few of them suffice (Helmberg and Rendl 2000, for the linear case).

    >>> class Dense:
    ...     B, rows = np.array([[1.0, 0.0], [0.0, 4.0]]), 2
    ...     def pull(self, V): return self.B.T @ V
    ...     def push(self, Y): return self.B @ Y
    >>> best = tracked(Dense(), csr_array([[1.0], [-1.0]]), np.zeros(1), rtol=1e-6)   # max(e^{−2t}, 16 e^{2t})
    >>> round(best.ritz, 5), round(best.lower, 5)
    (4.0, 4.0)
    """
    V = _orthonormal(np.random.default_rng(key).standard_normal((B.rows, min(_BLOCK, B.rows))))
    Y, t, lower, best = B.pull(V), start, 0.0, None
    for _ in range(_ROUNDS):
        V, Y, ritz, top = _expanded(B, V, Y, np.exp(-2 * (A @ t)))
        if best is None or ritz < best.ritz:
            best = Tracked(t, ritz, V @ top, lower)
        found = flattest(compressed(Rescaling(Y.T, A)), rtol=0.1 * rtol)
        lower = max(lower, found.lower)
        best = Tracked(best.t, best.ritz, best.vector, min(lower, best.ritz))
        if best.ritz - best.lower <= rtol * best.ritz:
            break
        t = found.t
        V, Y = _leading(V, Y, np.exp(-2 * (A @ t)))
    assert best is not None
    return best


def _expanded(B: Jacobian, V: Floats, Y: Floats, scales: Floats) -> tuple[Floats, Floats, float, Floats]:
    """V and BᵀV with a short block Krylov space of M added; its top Ritz value and its vector within V."""
    for _ in range(_DEPTH):
        small = Y.T @ (scales[:, None] * Y)
        top = np.linalg.eigh(small)[1][:, -_BLOCK:]
        new = _outside(V, B.push(scales[:, None] * (Y @ top)))
        if not new.size:  # V holds all that M can make of it
            break
        V, Y = np.hstack([V, new]), np.hstack([Y, B.pull(new)])
    m, S = np.linalg.eigh(Y.T @ (scales[:, None] * Y))
    return V, Y, float(m[-1]), S[:, -1]


def _leading(V: Floats, Y: Floats, scales: Floats) -> tuple[Floats, Floats]:
    """The part of V that matters at the next t."""
    S = np.linalg.eigh(Y.T @ (scales[:, None] * Y))[1][:, -_KEPT:]
    return V @ S, Y @ S


def _outside(V: Floats, W: Floats) -> Floats:
    """An orthonormal basis of what W adds to V."""
    W = W / np.maximum(np.linalg.norm(W, axis=0), np.finfo(float).tiny)
    for _ in range(2):  # twice is enough (Kahan)
        W = W - V @ (V.T @ W)
    U, s, _ = np.linalg.svd(W, full_matrices=False)
    # What is left of a vector that V held already is rounding.
    new: Floats = U[:, s > 1e-8]
    new = new - V @ (V.T @ new)
    return _orthonormal(new) if new.size else new


def _orthonormal(W: Floats) -> Floats:
    Q: Floats = np.linalg.qr(W)[0]
    return Q
