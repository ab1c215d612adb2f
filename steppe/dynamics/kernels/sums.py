"""Sums of products, in vectors and always in the same order."""

from steppe.dynamics.kernels.compiled import part
from steppe.dynamics.kernels.simd import add, fma, lanes_of, load, total, zeros


@part
def dot(a, b, size):  # type: ignore[no-untyped-def]
    """Σ aₖbₖ over the first `size` numbers: four vectors of partial sums, then whole vectors, then what is left."""
    lanes = lanes_of(a)
    whole = size // lanes * lanes
    first = whole // (4 * lanes) * (4 * lanes)
    s0, s1, s2, s3 = zeros(a), zeros(a), zeros(a), zeros(a)
    for k in range(0, first, 4 * lanes):
        s0, s1 = fma(load(a, k), load(b, k), s0), fma(load(a, k + lanes), load(b, k + lanes), s1)
        k2, k3 = k + 2 * lanes, k + 3 * lanes
        s2, s3 = fma(load(a, k2), load(b, k2), s2), fma(load(a, k3), load(b, k3), s3)
    for k in range(first, whole, lanes):
        s0 = fma(load(a, k), load(b, k), s0)
    result = total(add(add(s0, s1), add(s2, s3)))
    for k in range(whole, size):
        result += a[k] * b[k]
    return result
