"""Nets of three layers, f(x) = W₃ · σ(W₂ σ(W₁x + b₁)), reading W₂ twice for a step of 1-SAM and once for one of SGD.

The gradient of one example is rank one in every layer, so the perturbed pass of SAM needs no perturbed matrix: with
δ = ∂f/∂z and c = ±ρ/‖∇f‖ it is W₂⁺a⁺ = W₂a⁺ + c δ (a·a⁺), and W₂⁺ᵀδ⁺ = W₂ᵀδ⁺ + c a (δ·δ⁺) on the way back. The update
of a step waits for the first pass of the next one.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from steppe.dynamics.kernels.activations import evaluate
from steppe.dynamics.kernels.compiled import OPTIONS, kernel, part
from steppe.dynamics.kernels.descent import gradient
from steppe.dynamics.kernels.heads import Head, differentiate, perturbation
from steppe.dynamics.kernels.losses import slope, value
from steppe.dynamics.kernels.matmul import ONE, TILE, ZERO, matmul, matmul_transposed
from steppe.dynamics.kernels.packed import LANES, ROWS, Floats, outer, products, rescaling, step_and_product
from steppe.dynamics.kernels.second_layer import Shape, sweep
from steppe.dynamics.kernels.sums import dot


class Network(NamedTuple):
    """What compiled code sees: the head, the inputs, the first-layer neurons to look at, W₂, and room for a batch."""

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
