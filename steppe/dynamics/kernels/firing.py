"""Passes over W₂ = κV with one row of V for each neuron of the first layer: they read the rows of those that fire.

A neuron that is silent on the example adds nothing to z = W₂σ(h), gets nothing back and does not move. `rows` says
where the rows of the others begin. They are taken in fours; what is missing in the last four is the row of zeros that
V ends with.
"""

from steppe.dynamics.kernels.compiled import part
from steppe.dynamics.kernels.simd import at, fma, lanes_of, load, store, total, zeros


@part
def list_firing(a, s, width, stride, rows, neurons):  # type: ignore[no-untyped-def]
    """Which of `width` neurons have a value or a slope: returns how many, and fills `neurons` and `rows`."""
    count = 0
    for j in range(width):  # without a branch, since no processor foresees which neuron fires
        neurons[count] = j
        count += (a[j] != 0) | (s[j] != 0)
    for k in range(count):
        rows[k] = neurons[k] * stride
    return count


@part
def forward(V, rows, shares, count, columns, z):  # type: ignore[no-untyped-def]
    """z = Σ shareₖ · rowₖ over `count` rows."""
    lanes = lanes_of(V)
    z[:] = V.dtype.type(0)
    for k in range(0, count, 4):
        r0, r1, r2, r3 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        a0, a1, a2, a3 = at(shares, k), at(shares, k + 1), at(shares, k + 2), at(shares, k + 3)
        for j in range(0, columns, lanes):
            low = fma(a1, load(V, r1 + j), fma(a0, load(V, r0 + j), load(z, j)))
            store(z, j, fma(a3, load(V, r3 + j), fma(a2, load(V, r2 + j), low)))


@part
def backward(V, rows, moves, moving, count, columns, delta, products):  # type: ignore[no-untyped-def]
    """productₖ = rowₖ · delta, and then, if `moving`, rowₖ ← rowₖ − moveₖ · delta.

    From the last row to the first: those that `forward` read last are still in the cache.
    """
    lanes = lanes_of(V)
    for k in range((count - 1) // 4 * 4, -1, -4):
        r0, r1, r2, r3 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        u0, u1, u2, u3 = -at(moves, k), -at(moves, k + 1), -at(moves, k + 2), -at(moves, k + 3)
        s0, s1, s2, s3 = zeros(V), zeros(V), zeros(V), zeros(V)
        for j in range(0, columns, lanes):
            d, w0, w1, w2, w3 = load(delta, j), load(V, r0 + j), load(V, r1 + j), load(V, r2 + j), load(V, r3 + j)
            s0, s1, s2, s3 = fma(w0, d, s0), fma(w1, d, s1), fma(w2, d, s2), fma(w3, d, s3)
            if moving:
                store(V, r0 + j, fma(u0, d, w0))
                store(V, r1 + j, fma(u1, d, w1))
                store(V, r2 + j, fma(u2, d, w2))
                store(V, r3 + j, fma(u3, d, w3))
        products[k], products[k + 1] = total(s0), total(s1)
        products[k + 2], products[k + 3] = total(s2), total(s3)
