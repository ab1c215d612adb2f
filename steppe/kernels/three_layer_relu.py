"""The kernel of three-layer ReLU nets, one example a step: it reads only the neurons that fire in the first layer."""

from typing import NamedTuple, final

import numpy as np
from jax import Array

from steppe.kernels.elementary import Head, differentiate, evaluate, perturbation, slope, value
from steppe.kernels.matrices import (
    LANES,
    ROWS,
    Floats,
    aligned,
    backward,
    forward,
    list_firing,
    pack,
    padded,
    rescaling,
    row_stride,
    step_and_product,
    unpack,
)
from steppe.kernels.simd import BYTES, dot, kernel, part
from steppe.kernels.three_layer import ThreeLayerKernel
from steppe.kernels.training import Kernel, Recipe, Training
from steppe.networks import MLP
from steppe.problem import Problem


class Network(NamedTuple):
    """What compiled code gets: the head, the inputs, and V: one row for each of `width` neurons, and one of zeros.

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
        if kappa[0] < half:  # before κ underflows; it depends on the state alone
            V *= kappa[0]
            kappa[0] = one
        scale, shrink, c = kappa[0], decay, zero
        old[:], delta[:], out[:] = zero, zero, zero  # as at the start of a call: 0·∞ from the last step would be NaN
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
            for k in range(live):  # since κ shrinks too: κ·decay·V − step·a deltaᵀ = κ·decay·(V − move deltaᵀ)
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


@final
class ThreeLayerReLUKernel(Kernel):
    """The fast path for one three-layer problem with neurons that can be silent.

    Its state is W₁ with b₁ packed, V row by row, W₃, all padded, and κ: W₂ = κVᵀ.
    """

    single = staticmethod(single)

    @staticmethod
    def fits(problem: Problem, recipe: Recipe, key: int | None = None) -> bool:
        net = problem.predict
        return (
            isinstance(net, MLP)
            and net.activation.leak == 0
            and ThreeLayerKernel.fits(problem, recipe, key)
            and recipe.batch_size == 1 < len(problem)
            # The kernel divides by κ, so a decay that removes most of it in a step is left to the other kernel.
            and recipe.lr * recipe.weight_decay <= 0.5
        )

    def __init__(self, problem: Problem, recipe: Recipe, key: int | None = None):
        self.training = t = Training(problem, recipe, key)
        self.size = k, m = t.arrays(problem.w0)["W2"].shape
        columns = padded(k, BYTES // np.dtype(t.number).itemsize)
        self.compiled = Network(Head(t.activation, t.number(0)), t.X, m, columns, row_stride(columns, t.number))
        self.held = padded(m, LANES) * t.X.shape[1]
        self.second = (m + 1) * self.compiled.stride

    def network(self) -> Network:
        return self.compiled

    def _split(self, state: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Views of W₁ and of V, W₃ and κ without their padding."""
        k, m = self.size
        end = self.held + self.second
        P, V, v, kappa = np.split(state, [self.held, end, end + self.compiled.columns])
        W1 = P.reshape(-1, self.training.X.shape[1] // ROWS, ROWS * LANES)
        return W1, V.reshape(m + 1, -1)[:m, :k], v[:k], kappa

    def start(self, w: Array) -> Floats:
        W, params = self.training.params(w)
        state = aligned(self.held + self.second + self.compiled.columns + 1, W.dtype)
        P, V, v, kappa = self._split(state)
        P[...], V[...], v[...], kappa[...] = pack(W), params["W2"].T, params["W3"], 1
        return state

    def position(self, state: Floats) -> Array:
        P, V, v, kappa = self._split(state)
        W = unpack(P, self.size[1], self.training.d)
        return self.training.vector(W, {"W2": (kappa * V).T, "W3": v})
