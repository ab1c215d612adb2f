"""The rescaling t with the least λ_max(M(t)), a convex problem, with a proven lower bound; see `Rescaling`."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import cho_solve
from scipy.sparse import csr_array, diags_array

from steppe import check
from steppe._result import Rows
from steppe.flattening._cholesky import damped
from steppe.flattening._rescaling import Rescaling, balance, compressed, lower_bound
from steppe.linalg import one_thread
from steppe.training_set import Floats

# For dense problems: the most values of μ, the most Newton steps for each, and the factor between two values.
_ROUNDS, _NEWTON, _SHRINK = 60, 60, 0.2

# For tracked eigenvectors: new vectors for each power of M, powers of M in a round, vectors kept after it, rounds.
_BLOCK, _DEPTH, _KEPT, _TRACKED_ROUNDS = 12, 2, 36, 40


@dataclass(frozen=True, eq=False)
class Smoothed:
    """F(t) = μ log tr e^{M(t)/μ}, which is smooth and within μ log N of λ_max(M(t)): `value`, `gradient` and `hessian`.

    `top` = λ_max(M), `vector` is its eigenvector, and `density` is Q = e^{M/μ}/tr e^{M/μ}.
    """

    value: float
    top: float
    vector: Floats
    density: Floats
    gradient: Floats
    hessian: Floats


def value(form: Rescaling, t: Floats, mu: float) -> float:
    """F(t)."""
    m = np.linalg.eigvalsh(form.gram(t))
    return float(m[-1] + mu * np.log(np.sum(np.exp((m - m[-1]) / mu))))


def smoothed(form: Rescaling, t: Floats, mu: float) -> Smoothed:
    """F(t) with its derivatives.

    ∂_u F = ⟨Q, ∂_u M⟩ and ∂_u∂_v F = ⟨Q, ∂_u∂_v M⟩ + Σ_ab Φ_ab (∂_u M)_ab (∂_v M)_ab − ∂_u F ∂_v F/μ in the eigenbasis
    of M, with Φ the divided differences of the weights of Q, q_a/μ on the diagonal (Daleckii and Krein 1965).
    """
    A, scales = form.exponents, form.scales(t)
    m, V = np.linalg.eigh((form.jacobian * scales) @ form.jacobian.T)
    shifted = np.exp((m - m[-1]) / mu)
    total = shifted.sum()
    q = shifted / total
    rotated = V.T @ form.jacobian
    flows = scales * (q @ rotated**2)
    gradient = -2 * (A.T @ flows)
    gaps = np.abs(m[:, None] - m[None])
    # Φ_ab = (q_a − q_b)/(m_a − m_b), written so that close eigenvalues do not cancel.
    larger = np.maximum(q[:, None], q[None])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = -np.expm1(-gaps / mu) / gaps
    divided = larger * np.where(gaps > 0, ratio, 1 / mu)
    flat = _slopes(form, rotated, scales).reshape(form.units, m.size**2)
    second = (A.T @ diags_array(flows) @ A).toarray()  # flows · A_ku A_kv, the curvature of the exponentials
    hessian = 4 * second + (flat * divided.reshape(-1)) @ flat.T - np.outer(gradient, gradient) / mu
    return Smoothed(
        float(m[-1] + mu * np.log(total)), float(m[-1]), V[:, -1], (V * q) @ V.T, gradient, hessian
    )  # fmt: skip


def _slopes(form: Rescaling, rotated: Floats, scales: Floats) -> Floats:
    """∂_u M = −2 Σ_k A_ku e^{−2(At)_k} j_k j_kᵀ for each u, (units, N, N)."""
    A, slopes = form.exponents.tocsc(), np.empty((form.units, len(rotated), len(rotated)))
    for u, (start, stop) in enumerate(zip(A.indptr[:-1], A.indptr[1:], strict=True)):
        own = A.indices[start:stop]
        columns = rotated[:, own]
        slopes[u] = -2 * (columns * (A.data[start:stop] * scales[own])) @ columns.T
    return slopes


@dataclass(frozen=True, eq=False, repr=False)
class Flattest(Rows, index="neuron", columns=("t",)):
    """`value` = λ_max(M(t)); no t has less than `lower`, and `gap` = (value − lower)/value.

    `top` is the bound from the top eigenvector alone, (S88) of mulayoff2021. `lower` is the bound from the best mixture
    of eigenvectors, which is needed if the largest eigenvalue is multiple at the minimum. `steps` counts Newton steps.
    """

    t: Floats
    value: float
    lower: float
    top: float
    steps: int

    @property
    def gap(self) -> float:
        return (self.value - self.lower) / self.value if self.value > 0 else 0.0


def flattest(form: Rescaling, *, rtol: float = 1e-8) -> Flattest:
    """min_t λ_max(M(t)) to a relative gap of `rtol`, or as near as rounding allows; the result states its gap.

    λ_max is the limit of μ log tr e^{M/μ} for μ → 0. At the minimum of that function over t the matrix
    Q = e^{M/μ}/tr e^{M/μ} has min_t ⟨M(t), Q⟩ ≥ λ_max − μ log N, and by min max ≥ max min every Q ⪰ 0 of trace 1 gives
    a lower bound (mulayoff2021, (S84), for Q = qqᵀ). Newton's method in t, μ shrinking.

    >>> form = Rescaling.of([([[1.0], [0.0]], -1, 0), ([[0.0], [4.0]], 0, -1)], 1)
    >>> best = flattest(form)                                      # max(e^{−2t}, 16 e^{2t}) = 4: no single q proves it
    >>> round(best.value, 6), best.gap < 1e-7, round(best.top, 6)
    (4.0, True, 0.0)
    """
    rtol = check.number("rtol", rtol, above=0.0)
    with one_thread(rows=len(form.jacobian)):
        return _minimised(form, rtol)


def _minimised(form: Rescaling, rtol: float) -> Flattest:
    N = len(form.jacobian)
    t = balance(form.exponents, form.weights(np.eye(N)))
    best = _bounded(form, t, np.eye(N) / N, None, 0)
    mu, steps = 0.1 * best.value, 0
    for _ in range(_ROUNDS if form.units and best.value > 0 else 0):
        point = smoothed(form, t, mu)
        for _ in range(_NEWTON):
            t, moved = _newton(form, t, mu, point)
            steps += 1
            point = smoothed(form, t, mu)
            # With so small a gradient the bound from Q is off by a few rtol at most, for any μ.
            if not moved or np.max(np.abs(point.gradient), initial=0.0) <= 0.01 * rtol * point.top:
                break
        best = _bounded(form, t, point.density, best, steps, point.vector)
        if best.gap <= rtol:
            break
        mu *= _SHRINK
    return best


def _newton(form: Rescaling, t: Floats, mu: float, point: Smoothed) -> tuple[Floats, bool]:
    """A damped Newton step with backtracking; False if only rounding is left to gain."""
    size = np.trace(point.hessian) / max(len(t), 1)
    # Neurons without effect have no curvature; the damping keeps their t.
    step = -cho_solve(damped(point.hessian, 1e-14 * size + np.finfo(float).tiny), point.gradient)
    step *= min(1.0, 2.0 / max(np.max(np.abs(step), initial=0.0), 1e-300))  # e² in scale at most
    slope, length = float(step @ point.gradient), 1.0
    while length > 1e-10:
        trial = t + length * step
        if value(form, trial, mu) < point.value + 0.1 * length * slope:
            return trial, True
        length /= 2
    return t, False


def _bounded(
    form: Rescaling, t: Floats, Q: Floats, before: Flattest | None, steps: int, vector: Floats | None = None
) -> Flattest:
    """The better of two points and of two bounds: any point gives an upper bound, any Q a lower one."""
    m, V = np.linalg.eigh(form.gram(t))
    vector = V[:, -1] if vector is None else vector
    lower, top = (_least(form, density) for density in (Q, np.outer(vector, vector)))
    if before is not None:
        lower, top = max(lower, before.lower), max(top, before.top)
        t = t if m[-1] <= before.value else before.t
    least = float(m[-1]) if before is None else min(float(m[-1]), before.value)
    # At the minimum both numbers are equal, and rounding may exchange their order.
    return Flattest(t, least, min(max(lower, top), least), min(top, least), steps)


def _least(form: Rescaling, Q: Floats) -> float:
    """A lower bound of min_t ⟨M(t), Q⟩, (S88) for any Q ⪰ 0 of trace 1."""
    weights = form.weights(Q / np.trace(Q))
    return lower_bound(form.exponents, weights, balance(form.exponents, weights))


class Jacobian(Protocol):
    """B (N, parameters), known by its products with blocks of vectors."""

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
    """`ritz` ≤ λ_max(M(t)) with the unit vector that attains it, and `lower` ≤ λ_max(M(t′)) for all t′."""

    t: Floats
    ritz: float
    vector: Floats
    lower: float


def tracked(B: Jacobian, A: csr_array, start: Floats, *, rtol: float, key: int = 0) -> Tracked:
    """The flattest rescaling for many rows, from `start`, to a relative gap of `rtol` between Ritz value and bound.

    For orthonormal V the matrix VᵀM(t)V = Σ_k e^{−2(At)_k} (Vᵀj_k)(Vᵀj_k)ᵀ belongs to a problem with few rows, and
    λ_max(VᵀMV) ≤ λ_max(M) for every t: its certified minimum bounds the whole problem from below. Its minimiser is
    the next t, and the top eigenvectors of M(t) join V. This is a bundle method whose pieces are not planes but convex
    functions with the curvature of λ_max, so that few pieces suffice (Helmberg and Rendl 2000, for the linear case).

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
    for _ in range(_TRACKED_ROUNDS):
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
        if not new.size:  # V is invariant under M
            break
        V, Y = np.hstack([V, new]), np.hstack([Y, B.pull(new)])
    m, S = np.linalg.eigh(Y.T @ (scales[:, None] * Y))
    return V, Y, float(m[-1]), S[:, -1]


def _leading(V: Floats, Y: Floats, scales: Floats) -> tuple[Floats, Floats]:
    """The top Ritz vectors within V at the next t."""
    S = np.linalg.eigh(Y.T @ (scales[:, None] * Y))[1][:, -_KEPT:]
    return V @ S, Y @ S


def _outside(V: Floats, W: Floats) -> Floats:
    """An orthonormal basis of the part of W outside V."""
    W = W / np.maximum(np.linalg.norm(W, axis=0), np.finfo(float).tiny)
    for _ in range(2):  # twice is enough (Kahan)
        W = W - V @ (V.T @ W)
    U, s, _ = np.linalg.svd(W, full_matrices=False)
    # A vector inside V leaves only rounding.
    new: Floats = U[:, s > 1e-8]
    new = new - V @ (V.T @ new)
    return _orthonormal(new) if new.size else new


def _orthonormal(W: Floats) -> Floats:
    Q: Floats = np.linalg.qr(W)[0]
    return Q
