"""Nets of three layers, f(x) = W₃ · σ(W₂ σ(W₁x + b₁)), one example a step, touching only what fires in the first layer.

The gradient of one example is rank one in every layer, so the perturbed pass of SAM needs no perturbed matrix: see
three_layer_steps.py. W₂ = κV: weight decay multiplies the number κ, so that a row of V that does not move is not
written.
"""

from typing import NamedTuple

import numpy as np

from steppe.dynamics.kernels.activations import evaluate
from steppe.dynamics.kernels.compiled import kernel, part
from steppe.dynamics.kernels.firing import backward, forward, list_firing
from steppe.dynamics.kernels.heads import Head, differentiate, perturbation
from steppe.dynamics.kernels.losses import slope, value
from steppe.dynamics.kernels.packed import LANES, ROWS, Floats, rescaling, step_and_product
from steppe.dynamics.kernels.sums import dot


class Network(NamedTuple):
    """What compiled code sees: the head, the inputs, and V: one row for each of `width` neurons, and one of zeros.

    A row has `columns` numbers, in whole vectors; rows begin `stride` numbers apart.
    """

    head: Head
    X: Floats
    width: int
    columns: int
    stride: int


@part
def _layers(w, network):  # type: ignore[no-untyped-def]
    """The state as (W₁ packed, V flat, W₃, κ as an array of one number)."""
    d, lanes = network.X.shape[1], -(-network.width // LANES) * LANES
    first, last = lanes * d, len(w) - 1 - network.columns
    return w[:first].reshape((lanes // LANES, d // ROWS, ROWS * LANES)), w[first:last], w[last:-1], w[-1:]


@kernel
def single(network, w, y, noise, loss, lengths, order, offset, count, lr, rho, decay, held, norm):  # type: ignore[no-untyped-def]
    """`count` steps of batch size 1; `held` means that W₁ keeps its `norm`. Returns (steps done, halt)."""
    head, X, columns, stride = network.head, network.X, network.columns, network.stride
    P, V, v, kappa = _layers(w, network)
    zero, half, one = w.dtype.type(0), w.dtype.type(0.5), w.dtype.type(1)
    lanes = P.shape[0] * LANES
    first, second = np.zeros((10, lanes + LANES), w.dtype), np.zeros((5, columns), w.dtype)
    h, a, s, back, u, old, raised = first[0], first[1], first[2], first[3], first[4], first[5], first[6]
    shares, moves, found = first[7], first[8], first[9]
    z, delta, before, out, room = second[0], second[1], second[2], second[3], second[4]
    rows, neurons = np.zeros(lanes + LANES, np.int64), np.zeros(lanes + LANES, np.int64)
    i, shrink, factor = order[offset], one, one
    for t in range(count + 1):  # the last pass only brings the update of W₁ of the last step
        previous, i = i, order[offset + t] if t < count else i
        step_and_product(P, u, X[previous], factor * shrink, X[i], h)
        if t == count:
            break
        label = y[i] + (noise[t, 0] if t < len(noise) else zero)
        if kappa[0] < half:  # before κ underflows, and by what the state says alone
            V *= kappa[0]
            kappa[0] = one
        scale, shrink, c = kappa[0], decay, zero
        old[:], delta[:], out[:] = zero, zero, zero  # as where a call begins: 0·∞ of the step before would be NaN
        for ascended in range(2):
            moving = ascended == 1 or rho == zero
            point = raised if ascended else h
            for j in range(lanes):
                a[j], s[j] = evaluate(head.activation, point[j])
            live = list_firing(a, s, network.width, stride, rows, neurons)
            for k in range(live):
                shares[k] = scale * a[neurons[k]]
            rows[live : live + 4], shares[live : live + 4] = network.width * stride, zero
            forward(V, rows, shares, live, columns, z)
            for k in range(columns):
                before[k] = delta[k]
            shift = c * dot(old, a, lanes)
            f, deltas, outs = differentiate(head, z, v, shift, c, columns, delta, out, room)
            if not ascended and not np.isfinite(value(loss, f, y[i])):
                return t, 2
            step = lr * slope(loss, f, label)
            for k in range(live):  # κ shrinks as well: κ·decay·V − step·a deltaᵀ = κ·decay·(V − move deltaᵀ)
                moves[k] = step / (scale * decay) * a[neurons[k]]
            moves[live : live + 4] = zero
            backward(V, rows, moves, moving, live, columns, delta, found)
            overlap = c * dot(before, delta, columns)
            back[:] = zero
            for k in range(live):
                j = neurons[k]
                back[j] = (scale * found[k] + overlap * old[j]) * s[j]
            if moving:
                break
            inner = lengths[i] * dot(back, back, lanes) + dot(a, a, lanes) * deltas
            c = perturbation(slope(loss, f, label), inner + outs, rho)
            for j in range(lanes):
                raised[j], old[j] = h[j] + c * lengths[i] * back[j], a[j]
        kappa[0] = scale * decay
        if held:
            overlap, squares = dot(back, h, lanes), lengths[i] * dot(back, back, lanes)
            factor = rescaling(w[: P.size], norm, decay, step, overlap, squares)
        for j in range(lanes):
            u[j] = factor * step * back[j]  # the update of W₁ is u xᵀ
        for k in range(columns):
            v[k] = decay * v[k] - step * out[k]
    return count, 0
