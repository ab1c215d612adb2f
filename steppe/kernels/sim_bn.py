"""The kernel of two-layer nets with simplified BatchNorm.

f(x) = Σⱼ vⱼ γⱼ σ(hⱼ(x))/sⱼ, where sⱼ² is the mean of σ(hⱼ)² over the training set.
"""

from typing import NamedTuple, final

import numpy as np
from jax import Array
from numba.extending import overload

from steppe.kernels.elementary import Activation, evaluate, perturbation, slope, value
from steppe.kernels.matrices import ONE, TILE, ZERO, Floats, aligned, matmul, padded
from steppe.kernels.sim_bn_products import Dense, Signs, inputs, move, products, select_firing, with_own_room
from steppe.kernels.simd import BYTES, OPTIONS, dot, fma, kernel, lanes_of, load, multiply, part, store, total, zeros
from steppe.kernels.training import Kernel, Recipe, Training, gradient, length
from steppe.networks import SimBN
from steppe.problem import Problem


class Network(NamedTuple):
    """What compiled code gets: the activation, the inputs by rows, by columns and as `products` takes them, and room.

    `neurons` is for the neurons that fire and their gradients, `room` for the weights of as many as a vector has
    lanes; A and S have one row a neuron and one column an example.
    """

    activation: Activation
    X: Floats
    XT: Floats
    inputs: Dense | Signs
    neurons: Floats
    room: Floats
    A: Floats
    S: Floats


@part
def _layers(w, X):  # type: ignore[no-untyped-def]
    """The state as (W₁ with b₁, γ, W₂)."""
    columns = X.shape[1]
    rows = len(w) // (columns + 2)
    return w[: rows * columns].reshape((rows, columns)), w[rows * columns : -rows], w[-rows:]


@part
def _differentiate(network, W, gamma, v, count, example, G, g_gamma, g_v):  # type: ignore[no-untyped-def]
    """f of one example over the first `count` neurons and its derivatives; returns f and their squared length.

    W and G lie as `select_firing` lays them: a pass over them has a neuron in each lane.
    """
    X, n, columns, lanes = network.X, len(network.X), network.X.shape[1], lanes_of(W)
    zero, one, x, number = W.dtype.type(0), W.dtype.type(1), X[example], W.dtype.type(n)
    h, s, inverse = network.room[: 4 * lanes], network.room[4 * lanes : 5 * lanes], network.room[5 * lanes : 6 * lanes]
    f, squares = zeros(W), zeros(W)
    for first in range(0, count, lanes):
        products(network.inputs, network.activation, n, W, first * columns, example, h, inverse, G)
        for j in range(lanes):
            h[j], s[j] = evaluate(network.activation, h[j])
        for j in range(lanes):
            mean = inverse[j] / number
            inverse[j] = one / np.sqrt(mean) if mean > zero else zero
        gammas, vs, scale = load(gamma, first), load(v, first), load(inverse, 0)
        a, q = multiply(load(h, 0), scale), multiply(multiply(gammas, vs), scale)
        across, along = multiply(q, load(s, 0)), multiply(-one / number, multiply(q, multiply(a, scale)))
        g, g_out = multiply(vs, a), multiply(gammas, a)
        store(g_gamma, first, g)
        store(g_v, first, g_out)
        f, squares = fma(gammas, g, f), fma(g_out, g_out, fma(g, g, squares))
        for d in range(columns):
            k = first * columns + d * lanes
            g = fma(along, load(G, k), multiply(x[d], across))
            store(G, k, g)
            squares = fma(g, g, squares)
    return total(f), total(squares)


@kernel
def single(network, w, y, noise, loss, lengths, order, offset, count, lr, rho, decay, held, norm):  # type: ignore[no-untyped-def]
    """`count` steps of batch size 1; `held` means that W₁ keeps its `norm`. Returns (steps done, halt)."""
    X, room = network.X, network.room
    W, gamma, v = _layers(w, X)
    W_live, gamma_live, v_live = _layers(network.neurons[0], X)
    G, g_gamma, g_v = _layers(network.neurons[1], X)
    flat, g_flat, lanes = W_live.reshape(-1), G.reshape(-1), lanes_of(w)
    zero, h, live = w.dtype.type(0), np.zeros_like(v), np.zeros(len(gamma_live) + 1, np.int64)
    for t in range(count):
        i = order[offset + t]
        label = y[i] + (noise[t, 0] if len(noise) else zero)
        firing = select_firing(network.activation, W, gamma, v, X[i], h, live, room, flat, gamma_live, v_live)
        for ascended in range(2):
            f, squares = _differentiate(network, flat, gamma_live, v_live, firing, i, g_flat, g_gamma, g_v)
            if ascended:
                break
            if not np.isfinite(value(loss, f, y[i])):
                return t, 2
            if rho == zero:
                break
            c = perturbation(slope(loss, f, label), squares, rho)
            for j in range(firing):
                gamma_live[j] += c * g_gamma[j]
                v_live[j] += c * g_v[j]
            for k in range(-(-firing // lanes) * lanes * X.shape[1]):
                flat[k] += c * g_flat[k]
        step = lr * slope(loss, f, label)
        if decay != 1:
            for k in range(len(w)):
                w[k] *= decay
        move(W, gamma, v, live, firing, step, room, g_flat, g_gamma, g_v)
        if held:
            long = length(w[: W.size])
            factor = norm / long if long > zero else zero
            for k in range(W.size):
                w[k] *= factor
    return count, 0


@overload(gradient, jit_options=OPTIONS)
def _gradient(network, w, index, y, targets, loss, g):  # type: ignore[no-untyped-def]
    if network.instance_class is not Network:
        return None

    def sim_bn(network, w, index, y, targets, loss, g):  # type: ignore[no-untyped-def]
        X, XT, A, S, n = network.X, network.XT, network.A, network.S, len(network.X)
        W, gamma, v = _layers(w, X)
        G, g_gamma, g_v = _layers(g, X)
        columns, lanes = XT.shape
        zero, batch = w.dtype.type(0), w.dtype.type(len(index))
        inverse, f, weights = np.zeros_like(v), np.zeros(lanes, w.dtype), np.zeros(lanes, w.dtype)
        matmul(W.reshape(-1), ZERO, columns, ONE, len(v), columns, XT.reshape(-1), ZERO, lanes, lanes,
               A.reshape(-1), ZERO, lanes)  # fmt: skip
        for j in range(len(v)):
            for i in range(n):
                A[j, i], S[j, i] = evaluate(network.activation, A[j, i])
            squares = dot(A[j], A[j], n)
            inverse[j] = np.sqrt(w.dtype.type(n) / squares) if squares > zero else zero
            q = gamma[j] * v[j] * inverse[j]
            for i in range(n):
                f[i] += q * A[j, i]
        total = zero
        for i in index:
            total += value(loss, f[i], y[i]) / batch
        for i in range(len(index)):
            weights[index[i]] = slope(loss, f[index[i]], targets[i]) / batch
        for j in range(len(v)):
            along = dot(weights, A[j], n) * inverse[j]
            g_gamma[j], g_v[j] = v[j] * along, gamma[j] * along
            q, along = gamma[j] * v[j] * inverse[j], along * inverse[j] / w.dtype.type(n)
            for i in range(n):
                S[j, i] *= q * (weights[i] - along * A[j, i])
        matmul(S.reshape(-1), ZERO, lanes, ONE, len(v), n, X.reshape(-1), ZERO, columns, columns,
               G.reshape(-1), ZERO, columns)  # fmt: skip
        return total

    return sim_bn


@final
class SimBNKernel(Kernel):
    """The fast path for one Sim-BN problem. Its state is W₁ with b₁ row by row, γ, W₂, all padded."""

    single = staticmethod(single)

    @staticmethod
    def fits(problem: Problem, recipe: Recipe, key: int | None = None) -> bool:
        net = problem.predict
        return (
            isinstance(net, SimBN)
            and Training.fits(problem, recipe, key)
            # If the statistics are over other inputs than the training set, the generic path is used.
            and np.array_equal(net.standardise.train.array.astype(problem.x.dtype), problem.x)
        )

    def __init__(self, problem: Problem, recipe: Recipe, key: int | None = None):
        number = np.dtype(problem.w0.dtype)
        self.training = t = Training(problem, recipe, key, unit=BYTES // number.itemsize)
        self.m = len(t.arrays(problem.w0)["W1"])
        self.rows = padded(self.m, TILE)
        n, columns = t.X.shape
        self.XT = aligned((columns, padded(n, BYTES // number.itemsize)), number)
        self.XT[:, :n] = t.X.T
        # Larger batches do not use tables; without them one compilation serves all inputs.
        self.inputs = inputs(t.X[:, : t.d], self.XT, tables=t.size == 1 and not t.activation.smooth)
        self.held = self.rows * columns

    def _split(self, state: Floats) -> tuple[Floats, Floats, Floats]:
        """Views of (W₁, b₁), γ and W₂ without their padding."""
        W, gamma, v = np.split(state, [self.held, self.held + self.rows])
        return W.reshape(self.rows, -1)[: self.m, : self.training.d], gamma[: self.m], v[: self.m]

    def start(self, w: Array) -> Floats:
        W, params = self.training.params(w)
        state = aligned(self.held + 2 * self.rows, W.dtype)
        for view, values in zip(self._split(state), (W, params["gamma"], params["W2"]), strict=True):
            view[...] = values
        return state

    def position(self, state: Floats) -> Array:
        W, gamma, v = self._split(state)
        return self.training.vector(W, {"gamma": gamma, "W2": v})

    def network(self) -> Network:
        t, XT, columns = self.training, self.XT, self.XT.shape[0]
        lanes = BYTES // XT.itemsize
        neurons = aligned((2, padded(self.m, lanes) * (columns + 2)), t.number)
        room = aligned(lanes * columns, t.number)
        A, S = (aligned((self.rows, XT.shape[1]), t.number) for _ in range(2))
        return Network(t.activation, t.X, XT, with_own_room(self.inputs), neurons, room, A, S)
