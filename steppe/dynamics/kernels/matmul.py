"""Products of matrices that lie in flat arrays, at most of the processor's speed for the small sizes met here."""

import numpy as np

from steppe.dynamics.kernels.compiled import part
from steppe.dynamics.kernels.simd import at, fma, lanes_of, load, store, total, zeros

TILE = 4
# The integers 0 and 1 with a type: numba compiles a function anew for every literal that it is called with.
ZERO, ONE = np.int64(0), np.int64(1)


@part
def matmul(A, a, row_a, column_a, rows, inner, B, b, row_b, columns, C, c, row_c):  # type: ignore[no-untyped-def]
    """C[r, j] = Σ_q A[r, q] B[q, j] for r < rows, a multiple of 4, and j < columns, a multiple of the lanes.

    A begins at A[a] and has strides (row_a, column_a), B at B[b] and C at C[c] with rows `row_b` and `row_c` apart.
    Four rows of a tile share each load of B, and their sums stay in registers.
    """
    lanes = lanes_of(A)
    for j in range(0, columns, lanes):
        for r in range(0, rows, TILE):
            r0 = a + r * row_a
            r1, r2, r3 = r0 + row_a, r0 + 2 * row_a, r0 + 3 * row_a
            s0, s1, s2, s3 = zeros(A), zeros(A), zeros(A), zeros(A)
            for q in range(inner):
                v, k = load(B, b + q * row_b + j), q * column_a
                s0 = fma(at(A, r0 + k), v, s0)
                s1 = fma(at(A, r1 + k), v, s1)
                s2 = fma(at(A, r2 + k), v, s2)
                s3 = fma(at(A, r3 + k), v, s3)
            to = c + r * row_c + j
            store(C, to, s0)
            store(C, to + row_c, s1)
            store(C, to + 2 * row_c, s2)
            store(C, to + 3 * row_c, s3)


@part
def matmul_transposed(A, row_a, rows, B, row_b, columns, inner, C, row_c):  # type: ignore[no-untyped-def]
    """C[r, j] = Σ_q A[r, q] B[j, q] for r < rows and j < columns, both even, and q < inner, a multiple of the lanes.

    Eight rows of A at a time stay in the nearest cache while B passes by.
    """
    lanes = lanes_of(A)
    for start in range(0, rows, 8):
        for j in range(0, columns, 2):
            b0, b1 = j * row_b, (j + 1) * row_b
            for r in range(start, min(start + 8, rows), 2):
                a0, a1 = r * row_a, (r + 1) * row_a
                s00, s01, s10, s11 = zeros(A), zeros(A), zeros(A), zeros(A)
                for q in range(0, inner, lanes):
                    x0, x1, y0, y1 = load(A, a0 + q), load(A, a1 + q), load(B, b0 + q), load(B, b1 + q)
                    s00, s01 = fma(x0, y0, s00), fma(x0, y1, s01)
                    s10, s11 = fma(x1, y0, s10), fma(x1, y1, s11)
                to = r * row_c + j
                C[to], C[to + 1] = total(s00), total(s01)
                C[to + row_c], C[to + row_c + 1] = total(s10), total(s11)
