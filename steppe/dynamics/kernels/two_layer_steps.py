"""Two-layer nets, with simplified LayerNorm or without, at the speed of reading the weights.

The gradient of one example is rank one in W₁, and the perturbed pass of SAM sees the same input: with δ = ∂f/∂h and
c = ±ρ/‖∇f‖ it is h⁺ = h + c δ ‖x′‖², W₂⁺ = W₂ + c ∂f/∂W₂. So a step of 1-SAM needs one product W₁x and one rank-one
update, and the update of a step is fused with the product of the next: one pass over W₁ a step. Where W₁ keeps its
norm, the length after the update follows from that before it, and the factor goes into the same pass.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from steppe.dynamics.kernels.compiled import OPTIONS, kernel, part
from steppe.dynamics.kernels.descent import gradient
from steppe.dynamics.kernels.heads import Head, differentiate, perturbation
from steppe.dynamics.kernels.losses import slope, value
from steppe.dynamics.kernels.packed import LANES, ROWS, Floats, outer, products, rescaling, step_and_product
from steppe.dynamics.kernels.sums import dot


class Network(NamedTuple):
    """What compiled code sees: the head, the inputs, the neurons to look at, and room to work in."""

    head: Head
    X: Floats
    width: int
    batch: Floats
    H: Floats
    room: Floats


@part
def _layers(w, X):  # type: ignore[no-untyped-def]
    """The state as (W₁ packed, W₂)."""
    d = X.shape[1]
    lanes = len(w) // (d + 1)
    return w[: lanes * d].reshape((lanes // LANES, d // ROWS, ROWS * LANES)), w[lanes * d :]


@kernel
def single(network, w, y, noise, loss, lengths, order, offset, count, lr, rho, decay, held, norm):  # type: ignore[no-untyped-def]
    """`count` steps of batch size 1; `held` means that W₁ keeps its `norm`. Returns (steps done, halt)."""
    head, X, width = network.head, network.X, network.width
    P, v = _layers(w, X)
    zero, one = w.dtype.type(0), w.dtype.type(1)
    h, delta, out, room, x = network.room[0], network.room[1], network.room[2], network.room[3], network.room[4]
    network.room[:] = zero
    i, shrink = order[offset], one
    for t in range(count):
        i = order[offset + t]
        step_and_product(P, delta, x, shrink, X[i], h)
        shrink, shift, c = decay, zero, zero
        label = y[i] + (noise[t, 0] if len(noise) else zero)
        for ascended in range(2):
            f, deltas, outs = differentiate(head, h, v, shift, c, width, delta, out, room)
            if ascended:
                break
            if not np.isfinite(value(loss, f, y[i])):
                return t, 2
            if rho == zero:
                break
            c = perturbation(slope(loss, f, label), lengths[i] * deltas + outs, rho)
            shift = c * lengths[i]
        step = lr * slope(loss, f, label)
        for j in range(width):
            v[j] = decay * v[j] - step * out[j]
        if held:
            W = w[: P.size]
            factor = rescaling(W, norm, decay, step, dot(delta, h, width), lengths[i] * deltas)
            shrink, step = factor * decay, factor * step
        for k in range(X.shape[1]):
            x[k] = step * X[i, k]  # the update of W₁ is delta xᵀ, and waits for the next pass
    step_and_product(P, delta, x, shrink, X[i], h)
    return count, 0


@overload(gradient, jit_options=OPTIONS)
def _gradient(network, w, index, y, targets, loss, g):  # type: ignore[no-untyped-def]
    if network.instance_class is not Network:
        return None

    def two_layer(network, w, index, y, targets, loss, g):  # type: ignore[no-untyped-def]
        n, H = len(index), network.H
        P, v = _layers(w, network.X)
        G, gv = _layers(g, network.X)
        delta, out, room = network.room[0], network.room[1], network.room[2]
        zero = w.dtype.type(0)
        for i in range(n):
            for k in range(network.X.shape[1]):
                network.batch[i, k] = network.X[index[i], k]
        products(P, network.batch, n, H)
        total = zero
        gv[:] = zero
        for i in range(n):
            f = differentiate(network.head, H[i], v, zero, zero, network.width, delta, out, room)[0]
            total += value(loss, f, y[index[i]]) / w.dtype.type(n)
            r = slope(loss, f, targets[i]) / w.dtype.type(n)
            for j in range(len(v)):
                H[i, j] = r * delta[j]
                gv[j] += r * out[j]
        outer(H, network.batch, n, G)
        return total

    return two_layer
