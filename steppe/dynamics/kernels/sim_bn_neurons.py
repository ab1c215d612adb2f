"""Which neurons of a Sim-BN net fire on an example: their copies, with a neuron in each lane, and back again."""

from steppe.dynamics.kernels.activations import evaluate
from steppe.dynamics.kernels.compiled import part
from steppe.dynamics.kernels.simd import fma, lanes_of, load, store, total, zeros
from steppe.dynamics.kernels.transpose import transpose


@part
def select_firing(activation, W, gamma, v, x, h, live, room, W_live, gamma_live, v_live):  # type: ignore[no-untyped-def]
    """Copies of the neurons that have a value or a slope at x; `live` names them. Returns their number.

    W_live has blocks of columns, as many neurons wide as a vector has lanes; the last block is filled up with zeros.
    Which neuron fires no processor foresees: the list is made without a branch.
    """
    lanes, columns, count = lanes_of(W), W.shape[1], 0
    flat, zero = W.reshape(-1), W.dtype.type(0)
    for j in range(len(v)):
        s = zeros(W)
        for d in range(0, columns, lanes):
            s = fma(load(flat, j * columns + d), load(x, d), s)
        h[j] = total(s)
    for j in range(len(v)):
        a, s = evaluate(activation, h[j])
        live[count] = j
        count += (a != 0) | (s != 0)
    for first in range(0, count, lanes):
        for r in range(lanes):
            fires, k = first + r < count, live[first + r]
            gamma_live[first + r], v_live[first + r] = (gamma[k], v[k]) if fires else (zero, zero)
            for d in range(0, columns, lanes):
                store(room, r * columns + d, load(flat, k * columns + d) if fires else zeros(W))
        for d in range(0, columns, lanes):
            transpose(room, d, columns, W_live, first * columns + d * lanes, lanes)
    return count


@part
def move(W, gamma, v, live, count, step, room, G, g_gamma, g_v):  # type: ignore[no-untyped-def]
    """The neurons in `live` take a step against their gradients, which lie as `select_firing` lays neurons."""
    lanes, columns, flat = lanes_of(W), W.shape[1], W.reshape(-1)
    for first in range(0, count, lanes):
        for d in range(0, columns, lanes):
            transpose(G, first * columns + d * lanes, lanes, room, d, columns)
        for r in range(min(lanes, count - first)):
            k = live[first + r]
            gamma[k] -= step * g_gamma[first + r]
            v[k] -= step * g_v[first + r]
            for d in range(0, columns, lanes):
                to = k * columns + d
                store(flat, to, fma(-step, load(room, r * columns + d), load(flat, to)))
