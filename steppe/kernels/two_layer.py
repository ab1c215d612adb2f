"""The kernel of two-layer nets, with simplified LayerNorm or without: as fast as the weights can be read."""

from typing import NamedTuple, final

import numpy as np
from jax import Array
from numba.extending import overload

from steppe.kernels.elementary import Head, differentiate, perturbation, slope, value
from steppe.kernels.matrices import (
    LANES,
    ROWS,
    TILE,
    Floats,
    aligned,
    outer,
    pack,
    padded,
    products,
    rescaling,
    row_stride,
    step_and_product,
    unpack,
)
from steppe.kernels.simd import OPTIONS, dot, kernel, part
from steppe.kernels.training import Kernel, Recipe, Training, gradient
from steppe.networks import MLP, SimLN, TwoLayer
from steppe.problem import Problem


class Network(NamedTuple):
    """What compiled code gets: the head, the inputs, how many neurons to compute, and room to work in."""

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


@final
class TwoLayerKernel(Kernel):
    """The fast path for one two-layer problem and one dynamics. Its state is W₁ with b₁ packed, then W₂ padded."""

    single = staticmethod(single)

    @staticmethod
    def fits(problem: Problem, recipe: Recipe, key: int | None = None) -> bool:
        net = problem.predict
        known = isinstance(net, TwoLayer | SimLN) or (isinstance(net, MLP) and net.depth == 2)
        return known and Training.fits(problem, recipe, key)

    def __init__(self, problem: Problem, recipe: Recipe, key: int | None = None):
        net = problem.predict
        self.training = t = Training(problem, recipe, key)
        self.m = len(t.arrays(problem.w0)["W1"])
        lanes = padded(self.m, LANES)
        self.held = lanes * t.X.shape[1]
        self.head = Head(t.activation, t.number(net.eps if isinstance(net, SimLN) else 0))
        # Padding has h = 0. If σ(0) = 0, whole vectors with padding may be computed.
        self.width = self.m if t.activation.smooth else lanes

    def start(self, w: Array) -> Floats:
        W, params = self.training.params(w)
        state = aligned(self.held + padded(self.m, LANES), W.dtype)
        state[: self.held] = pack(W).ravel()
        state[self.held : self.held + self.m] = params["W2"]
        return state

    def position(self, state: Floats) -> Array:
        P = state[: self.held].reshape(-1, self.training.X.shape[1] // ROWS, ROWS * LANES)
        return self.training.vector(unpack(P, self.m, self.training.d), {"W2": state[self.held : self.held + self.m]})

    def network(self) -> Network:
        t, lanes = self.training, padded(self.m, LANES)
        columns, size = row_stride(max(lanes, t.X.shape[1]), t.number), padded(t.size, TILE)
        batch, H = aligned((size, t.X.shape[1]), t.number), aligned((size, columns), t.number)
        return Network(self.head, t.X, self.width, batch, H, aligned((5, columns), t.number))
