"""Passes over the neurons of a Sim-BN net: which of them fire on an example, and their statistics over all.

In flat arrays: a view of a row is counted by numba in memory that threads share, and costs more than the row's sum.
"""

from steppe.dynamics.kernels.activations import evaluate
from steppe.dynamics.kernels.compiled import part
from steppe.dynamics.kernels.simd import BYTES, fma, load, slopes, store, total, zeros
from steppe.dynamics.kernels.sums import dot


@part
def select_firing(activation, W, gamma, v, x, h, live, W_live, gamma_live, v_live):  # type: ignore[no-untyped-def]
    """Copies of the neurons that have a value or a slope at x; `live` names them. Returns their number.

    Which neuron fires no processor foresees: the list is made without a branch.
    """
    lanes, columns, count = BYTES // W.itemsize, W.shape[1], 0
    flat, flat_live = W.reshape(-1), W_live.reshape(-1)
    for j in range(len(v)):
        s = zeros(W)
        for d in range(0, columns, lanes):
            s = fma(load(flat, j * columns + d), load(x, d), s)
        h[j] = total(s)
    for j in range(len(v)):
        a, s = evaluate(activation, h[j])
        live[count] = j
        count += (a != 0) | (s != 0)
    for j in range(count):
        k = live[j]
        gamma_live[j], v_live[j] = gamma[k], v[k]
        for d in range(0, columns, lanes):
            store(flat_live, j * columns + d, load(flat, k * columns + d))
    return count


@part
def smooth_means(activation, A, S, size, n, means):  # type: ignore[no-untyped-def]
    """The means of a² over n examples, from `size` rows h of A, which become a σ′(h). S is overwritten."""
    for j in range(size):
        for i in range(A.shape[1]):
            a, s = evaluate(activation, A[j, i])
            A[j, i], S[j, i] = a * s, a
        means[j] = dot(S[j], S[j], n) / A.dtype.type(n)


@part
def rectified_means(leak, A, size, lanes, n, means):  # type: ignore[no-untyped-def]
    """The same for a = h or leak·h in flat A, in one pass: a σ′ = σ′²h and a² = (a σ′)h; padding has h = 0."""
    for j in range(size):
        squares = zeros(A)
        for k in range(j * lanes, (j + 1) * lanes, BYTES // A.itemsize):
            h = load(A, k)
            product = fma(slopes(h, leak * leak), h, zeros(A))
            store(A, k, product)
            squares = fma(product, h, squares)
        means[j] = total(squares) / A.dtype.type(n)
