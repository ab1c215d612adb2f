"""GD, SGD and SAM on f(x) = W₂ · relu(W₁x + b₁) with squared loss, at the speed of reading the weights.

The gradient of one example is rank one in W₁, and the perturbed pass of SAM sees the same input: with
δ = W₂ ⊙ 1[h > 0] and c = ±ρ/‖∇f‖ it is h⁺ = h + c δ ‖x′‖², W₂⁺ = W₂ + c a. So a step of 1-SAM needs one product W₁x
and one rank-one update, and the update of a step is fused with the product of the next: one pass over W₁ a step.
"""

from typing import Any, NamedTuple, final

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import losses
from steppe.dynamics.base import Dynamics
from steppe.dynamics.gd import GD
from steppe.dynamics.kernels.packed import (
    LANES,
    ROWS,
    kernel,
    pack,
    padded,
    products,
    rank_update,
    step_and_product,
    total,
    unpack,
)
from steppe.dynamics.order import Indices
from steppe.dynamics.path import Halt
from steppe.dynamics.sam import SAM
from steppe.problems import Problem
from steppe.problems.networks import TwoLayer, relu

Floats = NDArray[np.floating]


class State(NamedTuple):
    """W₁ with b₁ as its last column, packed; W₂ padded."""

    P: Floats
    v: Floats


@final
class TwoLayerKernel:
    """The fast path for one two-layer problem and one dynamics."""

    @staticmethod
    def fits(problem: Problem, dynamics: Dynamics) -> bool:
        return (
            isinstance(problem.predict, TwoLayer)
            and problem.predict.activation is relu
            and problem.criterion in (losses.mse, losses.half_mse)
            and isinstance(dynamics, GD | SAM)
            and problem.w0.dtype in (jnp.float32, jnp.float64)
            and isinstance(problem.x, Array)
            and problem.x.ndim == 2
        )

    def __init__(self, problem: Problem, dynamics: GD | SAM):
        self.problem, self.bias = problem, problem.predict.bias  # type: ignore[attr-defined]
        x = np.asarray(problem.x)
        n, d = x.shape
        self.d = d + self.bias
        self.X = np.zeros((n, padded(self.d, ROWS)), x.dtype)
        self.X[:, :d] = x
        self.X[:, d : self.d] = 1
        self.y = np.asarray(problem.y)
        self.norms = (self.X**2).sum(1)
        self.size = min(dynamics.batch_size or n, n)
        number = x.dtype.type
        lr = float(dynamics.lr)
        self.lr, self.decay = number(lr), number(1 - lr * float(dynamics.weight_decay))
        self.rho = number(dynamics.rho if isinstance(dynamics, SAM) else 0.0)
        self.scale = number(2.0 if problem.criterion == losses.mse else 1.0)  # ℓ′ = scale · residual

    def start(self, w: Array) -> State:
        params = {name: np.asarray(a) for name, a in self.problem.unravel(w).items()}
        W = np.column_stack([params["W1"], params["b1"]]) if self.bias else params["W1"]
        v = np.zeros(padded(len(W), LANES), W.dtype)
        v[: len(W)] = params["W2"]
        return State(pack(W), v)

    def position(self, state: State) -> Array:
        m, d = self.problem.unravel(self.problem.w0)["W1"].shape
        W = unpack(state.P, m, self.d)
        params = {"W1": W[:, :d], "W2": state.v[:m]} | ({"b1": W[:, d]} if self.bias else {})
        return jnp.concatenate([jnp.asarray(params[name]).ravel() for name in sorted(params)])

    def advance(
        self, state: State, orders: Indices | None, *, first: int, offset: int, count: int, target: float
    ) -> tuple[State, int, Halt]:
        rates = (self.lr, self.rho, self.scale, self.decay)
        P, v = state.P.copy(), state.v.copy()
        if self.size == 1 and orders is not None:
            done, halt = _single(P, v, self.X, self.y, self.norms, orders.ravel(), offset, count, *rates)
        else:
            rows = np.arange(len(self.y), dtype=np.int32)[None] if orders is None else orders
            goal = self.y.dtype.type(target if orders is None else -np.inf)
            done, halt = _batches(P, v, self.X, self.y, rows, self.size, offset, count, orders is None, goal, *rates)
        return State(P, v), done, Halt(halt)


@kernel
def _perturbation(residual, squared_norm, rho, zero):  # type: ignore[no-untyped-def]
    """c = ±ρ/‖∇‖; a fitted example has no direction and gets no perturbation."""
    if residual == zero or squared_norm == zero:  # noqa: PLR1714 (compiled)
        return zero
    c = rho / np.sqrt(squared_norm)
    return c if residual > zero else -c


@kernel
def _single(P, v, X, y, norms, order, offset, count, lr, rho, scale, decay):  # type: ignore[no-untyped-def]
    """`count` steps of batch size 1. Returns (steps done, halt)."""
    m, zero, one = len(v), v.dtype.type(0), v.dtype.type(1)
    h, u = np.zeros(m, v.dtype), np.zeros(m, v.dtype)
    outputs, active, squares = np.zeros(LANES, v.dtype), np.zeros(LANES, v.dtype), np.zeros(LANES, v.dtype)
    previous, shrink = order[offset], one
    for t in range(count):
        i = order[offset + t]
        step_and_product(P, u, X[previous], shrink, X[i], h)
        previous, shrink = i, decay
        outputs[:], active[:], squares[:] = zero, zero, zero
        for b in range(0, m, LANES):
            hb, vb = h[b : b + LANES], v[b : b + LANES]
            for j in range(LANES):
                a, s = (hb[j], vb[j]) if hb[j] > zero else (zero, zero)
                outputs[j] += s * a
                active[j] += s * s
                squares[j] += a * a
        residual = total(outputs) - y[i]
        if not np.isfinite(residual * residual):
            return t, 2
        c = _perturbation(residual, total(active) * norms[i] + total(squares), rho, zero)
        shift = c * norms[i]
        outputs[:] = zero
        for b in range(0, m, LANES):
            hb, vb = h[b : b + LANES], v[b : b + LANES]
            for j in range(LANES):
                a, s = (hb[j], vb[j]) if hb[j] > zero else (zero, zero)
                raised = hb[j] + shift * s
                outputs[j] += (vb[j] + c * a) * (raised if raised > zero else zero)
        step = lr * scale * (total(outputs) - y[i])
        for j in range(m):
            a, s = (h[j], v[j]) if h[j] > zero else (zero, zero)
            raised = h[j] + shift * s
            u[j] = step * (v[j] + c * a) if raised > zero else zero
            v[j] = decay * v[j] - step * (raised if raised > zero else zero)
    if count > 0:
        step_and_product(P, u, X[previous], shrink, X[previous], h)
    return count, 0


@kernel
def _batches(P, v, X, y, orders, size, offset, count, full, target, lr, rho, scale, decay):  # type: ignore[no-untyped-def]
    """`count` steps of any batch size; `full` means that every batch is the whole data. Returns (steps done, halt)."""
    n, m = orders.shape[1], len(v)
    zero, one = v.dtype.type(0), v.dtype.type(1)
    per_epoch = -(-n // size)
    H, U = np.zeros((size, m), v.dtype), np.zeros((size, m), v.dtype)
    G, g, residuals = np.zeros_like(P), np.zeros_like(v), np.zeros(size, v.dtype)
    for t in range(count):
        epoch, position = (0, 0) if full else ((offset + t) // per_epoch, (offset + t) % per_epoch)
        index = orders[epoch, position * size : min((position + 1) * size, n)]
        b = len(index)
        products(P, X, index, H)
        squares = _residuals(H, v, y, index, residuals, zero)
        if not np.isfinite(squares):
            return t, 2
        if full and squares * scale / (2 * b) <= target:
            return t, 1
        raised_v = v
        if rho > zero:
            # H⁺ = X(W₁ + cG)ᵀ with G the gradient, so W₁ itself is neither moved nor read again.
            # The factor ℓ′/residual = scale/b drops out of the direction; G holds minus the gradient.
            _back(H, v, residuals, b, U, g, zero)
            G[:] = zero
            rank_update(G, U, X, index, one)
            squared = _squared_norm(G.reshape(-1, LANES)) + _squared_norm(g.reshape(-1, LANES))
            c = rho / np.sqrt(squared) if squared > zero else zero
            raised_v = v + c * g
            products(G, X, index, U)
            for i in range(b):
                for j in range(m):
                    H[i, j] -= c * U[i, j]
            _residuals(H, raised_v, y, index, residuals, zero)
        for i in range(b):
            residuals[i] *= lr * scale / b
        _back(H, raised_v, residuals, b, U, g, zero)
        G[:] = P
        rank_update(P, U, X, index, decay)
        for j in range(m):
            g[j] = decay * v[j] - g[j]
        if full and (g == v).all() and (G == P).all():
            return t, 3
        v[:] = g
    return count, 0


@kernel
def _residuals(H, v, y, index, residuals, zero):  # type: ignore[no-untyped-def]
    """f(xᵢ) − yᵢ for the batch; returns the sum of their squares."""
    lanes, squares = np.zeros(LANES, v.dtype), zero
    for i in range(len(index)):
        lanes[:] = zero
        for b in range(0, len(v), LANES):
            hb, vb = H[i, b : b + LANES], v[b : b + LANES]
            for j in range(LANES):
                lanes[j] += vb[j] * (hb[j] if hb[j] > zero else zero)
        residuals[i] = total(lanes) - y[index[i]]
        squares += residuals[i] * residuals[i]
    return squares


@kernel
def _squared_norm(rows):  # type: ignore[no-untyped-def]
    lanes = np.zeros(LANES, rows.dtype)
    for b in range(len(rows)):
        for j in range(LANES):
            lanes[j] += rows[b, j] * rows[b, j]
    return total(lanes)


@kernel
def _back(H, v, weights, b, U, g, zero):  # type: ignore[no-untyped-def]
    """U[i] = weightᵢ v ⊙ 1[hᵢ > 0] and g = Σ weightᵢ relu(hᵢ)."""
    g[:] = zero
    for i in range(b):
        r = weights[i]
        for j in range(len(v)):
            U[i, j] = r * v[j] if H[i, j] > zero else zero
            g[j] += r * H[i, j] if H[i, j] > zero else zero


def build(problem: Problem, dynamics: Dynamics) -> Any:
    """A kernel for this problem and dynamics, or None where only the generic path knows them."""
    return TwoLayerKernel(problem, dynamics) if TwoLayerKernel.fits(problem, dynamics) else None  # type: ignore[arg-type]
