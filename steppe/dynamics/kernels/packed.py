"""First-layer weights packed for SIMD, and the three passes over them that training needs.

A weight matrix (m, d) is stored as (⌈m/64⌉, ⌈d/4⌉, 4·64): blocks of 64 neurons, groups of 4 inputs. In a block the
64 partial sums of a product stay in the nearest cache and each of them is loaded once for 4 inputs, so a pass over
the weights costs little more than reading and writing them. Padding is zero and stays zero.
"""

import numba
import numpy as np
from numpy.typing import NDArray

LANES, ROWS = 64, 4

# Sums may be reordered and fused; NaN and infinity keep their meaning, since divergence is looked for.
_FAST = {"reassoc", "contract", "nsz", "arcp"}
kernel = numba.njit(nogil=True, cache=True, fastmath=_FAST)


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
    """H[i] = W x for each example of the batch."""
    H[: len(index)] = 0
    for b in range(P.shape[0]):
        for g in range(P.shape[1]):
            k, row = ROWS * g, P[b, g]
            for i in range(len(index)):
                x, hb = X[index[i]], H[i, b * LANES : (b + 1) * LANES]
                q0, q1, q2, q3 = x[k], x[k + 1], x[k + 2], x[k + 3]
                for j in range(LANES):
                    low = q0 * row[j] + q1 * row[LANES + j]
                    high = q2 * row[2 * LANES + j] + q3 * row[3 * LANES + j]
                    hb[j] += low + high


@kernel
def rank_update(P, U, X, index, decay):  # type: ignore[no-untyped-def]
    """W ← decay·W − Σᵢ U[i] xᵢᵀ over the batch."""
    for b in range(P.shape[0]):
        for g in range(P.shape[1]):
            k, row = ROWS * g, P[b, g]
            for j in range(ROWS * LANES):
                row[j] *= decay
            for i in range(len(index)):
                x, ub = X[index[i]], U[i, b * LANES : (b + 1) * LANES]
                p0, p1, p2, p3 = x[k], x[k + 1], x[k + 2], x[k + 3]
                for j in range(LANES):
                    uj = ub[j]
                    row[j] -= p0 * uj
                    row[LANES + j] -= p1 * uj
                    row[2 * LANES + j] -= p2 * uj
                    row[3 * LANES + j] -= p3 * uj
