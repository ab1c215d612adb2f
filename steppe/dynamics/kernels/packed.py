"""First-layer weights packed for SIMD, and the three passes over them that training needs.

A weight matrix (m, d) is stored as (⌈m/64⌉, ⌈d/4⌉, 4·64): blocks of 64 neurons, groups of 4 inputs. In a block the
64 partial sums of a product stay in the nearest cache and each of them is loaded once for 4 inputs, so a pass over
the weights costs little more than reading and writing them. Padding is zero and stays zero.
"""

import numba
import numpy as np
from numpy.typing import NDArray

LANES, ROWS = 64, 4

# No fastmath: every sum is rounded in the order written here, so that a result does not depend on what the compiler
# made of it (numba's code differs between a first run and one from its cache). Sums in lanes are fast all the same.
kernel = numba.njit(nogil=True, cache=True, error_model="numpy")


@kernel
def total(lanes):  # type: ignore[no-untyped-def]
    """The sum of LANES numbers, by halves; the array is used up."""
    half = LANES // 2
    while half:
        for j in range(half):
            lanes[j] += lanes[half + j]
        half //= 2
    return lanes[0]


def padded(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def pack(W: NDArray[np.floating]) -> NDArray[np.floating]:
    m, d = W.shape
    full = np.zeros((padded(m, LANES), padded(d, ROWS)), W.dtype)
    full[:m, :d] = W
    tiles = full.reshape(-1, LANES, full.shape[1] // ROWS, ROWS).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(tiles).reshape(len(tiles), -1, ROWS * LANES)


def unpack(P: NDArray[np.floating], m: int, d: int) -> NDArray[np.floating]:
    tiles = P.reshape(len(P), -1, ROWS, LANES).transpose(0, 3, 1, 2)
    return tiles.reshape(len(P) * LANES, -1)[:m, :d]


@kernel
def step_and_product(P, u, x, decay, x_next, h):  # type: ignore[no-untyped-def]
    """W ← decay·W − u xᵀ and h = W x_next in one pass: the update of one step fused with the product of the next."""
    for b in range(P.shape[0]):
        hb, ub = h[b * LANES : (b + 1) * LANES], u[b * LANES : (b + 1) * LANES]
        hb[:] = 0
        for g in range(P.shape[1]):
            k = ROWS * g
            p0, p1, p2, p3 = x[k], x[k + 1], x[k + 2], x[k + 3]
            q0, q1, q2, q3 = x_next[k], x_next[k + 1], x_next[k + 2], x_next[k + 3]
            row = P[b, g]
            for j in range(LANES):
                uj = ub[j]
                w0 = decay * row[j] - p0 * uj
                w1 = decay * row[LANES + j] - p1 * uj
                w2 = decay * row[2 * LANES + j] - p2 * uj
                w3 = decay * row[3 * LANES + j] - p3 * uj
                row[j], row[LANES + j], row[2 * LANES + j], row[3 * LANES + j] = w0, w1, w2, w3
                hb[j] += (q0 * w0 + q1 * w1) + (q2 * w2 + q3 * w3)


@kernel
def products(P, X, index, H):  # type: ignore[no-untyped-def]
    """H[i] = W x for each example of the batch; two examples at a time share the loads of the weights."""
    n = len(index)
    H[:n] = 0
    for b in range(P.shape[0]):
        first, last = b * LANES, (b + 1) * LANES
        for g in range(P.shape[1]):
            k, row = ROWS * g, P[b, g]
            for i in range(0, n - 1, 2):
                x, z = X[index[i]], X[index[i + 1]]
                hx, hz = H[i, first:last], H[i + 1, first:last]
                x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
                z0, z1, z2, z3 = z[k], z[k + 1], z[k + 2], z[k + 3]
                for j in range(LANES):
                    w0, w1, w2, w3 = row[j], row[LANES + j], row[2 * LANES + j], row[3 * LANES + j]
                    hx[j] += (x0 * w0 + x1 * w1) + (x2 * w2 + x3 * w3)
                    hz[j] += (z0 * w0 + z1 * w1) + (z2 * w2 + z3 * w3)
            if n % 2:
                x, hx = X[index[n - 1]], H[n - 1, first:last]
                x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
                for j in range(LANES):
                    low, high = x0 * row[j] + x1 * row[LANES + j], x2 * row[2 * LANES + j] + x3 * row[3 * LANES + j]
                    hx[j] += low + high


@kernel
def rank_update(P, U, X, index, decay):  # type: ignore[no-untyped-def]
    """W ← decay·W − Σᵢ U[i] xᵢᵀ over the batch; two examples at a time share the passes over the weights."""
    n = len(index)
    for b in range(P.shape[0]):
        first, last = b * LANES, (b + 1) * LANES
        for g in range(P.shape[1]):
            k, row = ROWS * g, P[b, g]
            for j in range(ROWS * LANES):
                row[j] *= decay
            for i in range(0, n - 1, 2):
                x, z = X[index[i]], X[index[i + 1]]
                ux, uz = U[i, first:last], U[i + 1, first:last]
                x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
                z0, z1, z2, z3 = z[k], z[k + 1], z[k + 2], z[k + 3]
                for j in range(LANES):
                    a, c = ux[j], uz[j]
                    row[j] -= x0 * a + z0 * c
                    row[LANES + j] -= x1 * a + z1 * c
                    row[2 * LANES + j] -= x2 * a + z2 * c
                    row[3 * LANES + j] -= x3 * a + z3 * c
            if n % 2:
                x, ux = X[index[n - 1]], U[n - 1, first:last]
                x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
                for j in range(LANES):
                    a = ux[j]
                    row[j] -= x0 * a
                    row[LANES + j] -= x1 * a
                    row[2 * LANES + j] -= x2 * a
                    row[3 * LANES + j] -= x3 * a
