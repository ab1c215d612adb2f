"""The kernel of three-layer nets, f(x) = W₃ · σ(W₂ σ(W₁x + b₁)), with any activation and any batch.

A step of 1-SAM reads W₂ twice, a step of SGD once: one pass does the update, the product forward and the one back.
"""

from typing import NamedTuple, final

import numpy as np
from jax import Array
from numba.extending import overload

from steppe.kernels.elementary import Head, differentiate, evaluate, perturbation, slope, value
from steppe.kernels.matrices import (
    LANES,
    ONE,
    ROWS,
    TILE,
    ZERO,
    Floats,
    aligned,
    matmul,
    matmul_transposed,
    outer,
    pack,
    padded,
    products,
    rescaling,
    row_stride,
    step_and_product,
    unpack,
)
from steppe.kernels.simd import OPTIONS, dot, fma, kernel, lanes_of, load, part, store, total, zeros
from steppe.kernels.training import Kernel, Recipe, Training, gradient
from steppe.networks import MLP
from steppe.problem import Problem

# Rows of W₂ that one pass handles together, few enough for the nearest cache.
BLOCK = 16


class Shape(NamedTuple):
    """W₂ is stored row by row: `rows` rows with padding, of which `last` are computed, of `columns` numbers each.

    Rows begin `stride` numbers apart.
    """

    rows: int
    last: int
    columns: int
    stride: int


@part
def sweep(head, shape, W, old, decay, moving, a, shift, v, c, z, delta, out, room, back):  # type: ignore[no-untyped-def]
    """One pass over W₂, which first moves to decay·W₂ − delta oldᵀ if `moving`.

    z = W₂a, f = v · σ(z) with its derivatives delta = ∂f/∂z and out = ∂f/∂v at the point given by shift and c (see
    `differentiate`), and back = W₂ᵀdelta. Returns f, ‖delta‖², ‖out‖² and the product of delta with the previous delta.
    Rows that do not move are not written; rows with delta 0 are not read again.
    """
    f = deltas = outs = overlap = zero = W.dtype.type(0)
    rows, shares, before = np.zeros(BLOCK + 4, np.int64), np.zeros(BLOCK + 4, W.dtype), np.zeros(BLOCK, W.dtype)
    back[:] = zero
    for first in range(0, shape.rows, BLOCK):
        for quad in range(first, first + BLOCK, 4):
            moves = delta[quad] != zero or delta[quad + 1] != zero or delta[quad + 2] != zero or delta[quad + 3] != zero
            if moving and (moves or decay != 1):
                for k in range(quad, quad + 4, 2):
                    _move_and_products(
                        W, k * shape.stride, shape.stride, shape.columns, delta[k:], old, decay, a, z[k:]
                    )
            else:
                _products(W, quad * shape.stride, shape.stride, shape.columns, a, z[quad:])
        for k in range(BLOCK):
            before[k] = delta[first + k]
        width = min(BLOCK, shape.last - first)
        parts = differentiate(head, z[first:], v[first:], shift, c, width, delta[first:], out[first:], room)
        f, deltas, outs = f + parts[0], deltas + parts[1], outs + parts[2]
        overlap += dot(before, delta[first:], len(before))
        live = 0
        for k in range(BLOCK):
            d = delta[first + k]
            rows[live], shares[live] = (first + k) * shape.stride, d
            live += d != zero
        shares[live : live + 4] = zero
        for k in range(0, live, 4):
            _add_rows(W, rows[k:], shares[k:], shape.columns, back)
    return f, deltas, outs, overlap


@part
def _move_and_products(W, row, stride, columns, u, old, decay, a, z):  # type: ignore[no-untyped-def]
    """Two rows of W₂, the first at `row`: row ← decay·row − u·old, and then z = row · a, summed as in `_products`."""
    lanes = lanes_of(W)
    u0, u1 = -u[0], -u[1]
    s0, s1 = zeros(W), zeros(W)
    for j in range(0, columns, lanes):
        x, p, at = load(a, j), load(old, j), row + j
        w0 = fma(u0, p, fma(decay, load(W, at), zeros(W)))
        w1 = fma(u1, p, fma(decay, load(W, at + stride), zeros(W)))
        store(W, at, w0)
        store(W, at + stride, w1)
        s0, s1 = fma(w0, x, s0), fma(w1, x, s1)
    z[0], z[1] = total(s0), total(s1)


@part
def _products(W, row, stride, columns, a, z):  # type: ignore[no-untyped-def]
    """The products of a with four rows of W₂."""
    lanes = lanes_of(W)
    s0, s1, s2, s3 = zeros(W), zeros(W), zeros(W), zeros(W)
    for j in range(0, columns, lanes):
        x, at = load(a, j), row + j
        s0, s1 = fma(load(W, at), x, s0), fma(load(W, at + stride), x, s1)
        s2, s3 = fma(load(W, at + 2 * stride), x, s2), fma(load(W, at + 3 * stride), x, s3)
    z[0], z[1], z[2], z[3] = total(s0), total(s1), total(s2), total(s3)


@part
def _add_rows(W, rows, shares, columns, back):  # type: ignore[no-untyped-def]
    """back += Σ shareₖ · rowₖ for four rows of W₂, given by where they begin."""
    lanes = lanes_of(W)
    r0, r1, r2, r3 = rows[0], rows[1], rows[2], rows[3]
    d0, d1, d2, d3 = shares[0], shares[1], shares[2], shares[3]
    for j in range(0, columns, lanes):
        low = fma(d1, load(W, r1 + j), fma(d0, load(W, r0 + j), load(back, j)))
        store(back, j, fma(d3, load(W, r3 + j), fma(d2, load(W, r2 + j), low)))


class Network(NamedTuple):
    """What compiled code gets: the head, the inputs, how many first-layer neurons to compute, W₂, room for a batch."""

    head: Head
    X: Floats
    width: int
    shape: Shape
    batch: Floats
    A: Floats
    S: Floats
    Z: Floats
    back: Floats


@part
def _layers(w, network):  # type: ignore[no-untyped-def]
    """The state as (W₁ packed, W₂ flat, W₃)."""
    d, lanes = network.X.shape[1], network.shape.columns
    first, second = lanes * d, network.shape.rows * network.shape.stride
    P = w[:first].reshape((lanes // LANES, d // ROWS, ROWS * LANES))
    return P, w[first : first + second], w[first + second :]


@part
def _evaluate(activation, h, width, a, s):  # type: ignore[no-untyped-def]
    """a = σ(h), s = σ′(h)."""
    for j in range(width):
        a[j], s[j] = evaluate(activation, h[j])


@kernel
def single(network, w, y, noise, loss, lengths, order, offset, count, lr, rho, decay, held, norm):  # type: ignore[no-untyped-def]
    """`count` steps of batch size 1; `held` means that W₁ keeps its `norm`. Returns (steps done, halt)."""
    head, shape, X, width = network.head, network.shape, network.X, network.width
    P, W, v = _layers(w, network)
    zero, one = w.dtype.type(0), w.dtype.type(1)
    first, second = np.zeros((7, shape.columns), w.dtype), np.zeros((4, shape.rows), w.dtype)
    h, a, s, back, u, old, raised = first[0], first[1], first[2], first[3], first[4], first[5], first[6]
    z, delta, out, room = second[0], second[1], second[2], second[3]
    i, shrink, factor = order[offset], one, one
    for t in range(count + 1):  # the last pass only brings the update of the last step
        previous, i = i, order[offset + t] if t < count else i
        step_and_product(P, u, X[previous], factor * shrink, X[i], h)
        label = y[i] + (noise[t, 0] if t < len(noise) else zero)
        c = zero
        for ascended in range(2):
            _evaluate(head.activation, raised if ascended else h, width, a, s)
            shift = c * dot(old, a, width)
            f, deltas, outs, overlap = sweep(
                head, shape, W, old, shrink, not ascended, a, shift, v, c, z, delta, out, room, back
            )
            for j in range(width):
                back[j] = (back[j] + c * overlap * old[j]) * s[j]
                old[j] = a[j]
            if ascended or t == count:
                break
            if not np.isfinite(value(loss, f, y[i])):
                return t, 2
            if rho == zero:
                break
            inner = lengths[i] * dot(back, back, width) + dot(a, a, width) * deltas
            c = perturbation(slope(loss, f, label), inner + outs, rho)
            shift = c * lengths[i]
            for j in range(width):
                raised[j] = h[j] + shift * back[j]
        if t < count:
            step, shrink = lr * slope(loss, f, label), decay
            if held:
                overlap, squares = dot(back, h, width), lengths[i] * dot(back, back, width)
                factor = rescaling(w[: P.size], norm, decay, step, overlap, squares)
            for j in range(width):
                u[j], old[j] = factor * step * back[j], step * a[j]  # the updates are u xᵀ and delta oldᵀ
            for k in range(shape.last):
                v[k] = decay * v[k] - step * out[k]
    return count, 0


@overload(gradient, jit_options=OPTIONS)
def _gradient(network, w, index, y, targets, loss, g):  # type: ignore[no-untyped-def]
    if network.instance_class is not Network:
        return None

    def three_layer(network, w, index, y, targets, loss, g):  # type: ignore[no-untyped-def]
        n, batch, A, S, Z = len(index), network.batch, network.A, network.S, network.Z
        width, stride, lanes, rows = network.width, network.shape.stride, network.shape.columns, network.shape.rows
        whole = -(-n // TILE) * TILE
        P, W, v = _layers(w, network)
        G, G2, gv = _layers(g, network)
        delta, out, room, zero = np.zeros_like(v), np.zeros_like(v), np.zeros_like(v), w.dtype.type(0)
        for i in range(n):
            for k in range(network.X.shape[1]):
                batch[i, k] = network.X[index[i], k]
        products(P, batch, n, network.back)
        for i in range(n):
            _evaluate(network.head.activation, network.back[i], width, A[i], S[i])
        matmul_transposed(A.reshape(-1), A.shape[1], whole, W, stride, rows, lanes, Z.reshape(-1), Z.shape[1])
        total = zero
        gv[:] = zero
        for i in range(n):
            f = differentiate(network.head, Z[i], v, zero, zero, network.shape.last, delta, out, room)[0]
            total += value(loss, f, y[index[i]]) / w.dtype.type(n)
            r = slope(loss, f, targets[i]) / w.dtype.type(n)
            for k in range(len(v)):
                Z[i, k] = r * delta[k]
                gv[k] += r * out[k]
        a, z, d = A.reshape(-1), Z.reshape(-1), network.back.reshape(-1)
        matmul(z, ZERO, ONE, Z.shape[1], rows, n, a, ZERO, A.shape[1], lanes, G2, ZERO, stride)
        matmul(z, ZERO, Z.shape[1], ONE, whole, rows, W, ZERO, stride, lanes, d, ZERO, A.shape[1])
        for i in range(n):
            for j in range(width):
                S[i, j] *= network.back[i, j]
        outer(S, batch, n, G)
        return total

    return three_layer


@final
class ThreeLayerKernel(Kernel):
    """The fast path for one three-layer problem: its state is W₁ with b₁ packed, W₂ row by row, W₃, all padded."""

    single = staticmethod(single)

    @staticmethod
    def fits(problem: Problem, recipe: Recipe, key: int | None = None) -> bool:
        net = problem.predict
        return isinstance(net, MLP) and net.depth == 3 and Training.fits(problem, recipe, key)

    def __init__(self, problem: Problem, recipe: Recipe, key: int | None = None):
        self.training = t = Training(problem, recipe, key)
        self.size = k, m = t.arrays(problem.w0)["W2"].shape
        lanes, rows = padded(m, LANES), padded(k, BLOCK)
        self.head, smooth = Head(t.activation, t.number(0)), t.activation.smooth
        # Padding has h = 0. If σ(0) = 0, whole vectors with padding may be computed.
        self.width = m if smooth else lanes
        self.shape = Shape(rows, k if smooth else rows, lanes, row_stride(lanes, t.number))
        self.held, self.second = lanes * t.X.shape[1], rows * self.shape.stride

    def _split(self, state: Floats) -> tuple[Floats, Floats, Floats]:
        """Views of W₁, W₂ and W₃ with their padding."""
        P, W2, W3 = np.split(state, [self.held, self.held + self.second])
        return P.reshape(-1, self.training.X.shape[1] // ROWS, ROWS * LANES), W2.reshape(self.shape.rows, -1), W3

    def start(self, w: Array) -> Floats:
        W, params = self.training.params(w)
        state = aligned(self.held + self.second + self.shape.rows, W.dtype)
        P, W2, W3 = self._split(state)
        k, m = self.size
        P[...], W2[:k, :m], W3[:k] = pack(W), params["W2"], params["W3"]
        return state

    def position(self, state: Floats) -> Array:
        P, W2, W3 = self._split(state)
        k, m = self.size
        return self.training.vector(unpack(P, m, self.training.d), {"W2": W2[:k, :m], "W3": W3[:k]})

    def network(self) -> Network:
        t = self.training

        def room(columns: int) -> Floats:
            return aligned((padded(t.size, TILE), columns), t.number)

        A, S, back = (room(self.shape.stride) for _ in range(3))
        Z = room(row_stride(self.shape.rows, t.number))
        return Network(self.head, t.X, self.width, self.shape, room(t.X.shape[1]), A, S, Z, back)
