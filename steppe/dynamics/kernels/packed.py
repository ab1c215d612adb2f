"""First-layer weights packed for SIMD, and the three passes over them that training needs.

A weight matrix (m, d) is stored as (⌈m/64⌉, ⌈d/4⌉, 4·64): blocks of 64 neurons, groups of 4 inputs. In a block the
64 partial sums of a product stay in the nearest cache and each of them is loaded once for 4 inputs, so a pass over
the weights costs little more than reading and writing them. Padding is zero and stays zero.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steppe.dynamics.kernels.compiled import part
from steppe.dynamics.kernels.matmul import ONE, TILE, ZERO, matmul
from steppe.dynamics.kernels.simd import fma
from steppe.dynamics.kernels.sums import dot

LANES, ROWS = 64, 4
Floats = NDArray[np.floating]


def padded(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def aligned(shape: int | tuple[int, ...], dtype: Any) -> Floats:
    """Zeros that begin at a multiple of 64 bytes: no vector straddles two cache lines, and a pass is a third faster."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    room = np.zeros(size + 64, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + size].view(dtype).reshape(shape)


def copied(array: Floats) -> Floats:
    """An aligned copy."""
    copy = aligned(array.shape, array.dtype)
    copy[...] = array
    return copy


def row_stride(columns: int, dtype: Any) -> int:
    """Rows of `columns` numbers, in whole vectors, are this far apart: never a multiple of 1 KiB.

    The same column of many rows then falls into different sets of the nearest cache.
    """
    size = np.dtype(dtype).itemsize
    stride = padded(columns, 64 // size)
    return stride + 64 // size if stride * size % 1024 == 0 else stride


def pack(W: Floats) -> Floats:
    m, d = W.shape
    full = np.zeros((padded(m, LANES), padded(d, ROWS)), W.dtype)
    full[:m, :d] = W
    tiles = full.reshape(-1, LANES, full.shape[1] // ROWS, ROWS).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(tiles).reshape(len(tiles), -1, ROWS * LANES)


def unpack(P: Floats, m: int, d: int) -> Floats:
    tiles = P.reshape(len(P), -1, ROWS, LANES).transpose(0, 3, 1, 2)
    return tiles.reshape(len(P) * LANES, -1)[:m, :d]


@part
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
                w0 = fma(-p0, uj, decay * row[j])
                w1 = fma(-p1, uj, decay * row[LANES + j])
                w2 = fma(-p2, uj, decay * row[2 * LANES + j])
                w3 = fma(-p3, uj, decay * row[3 * LANES + j])
                row[j], row[LANES + j], row[2 * LANES + j], row[3 * LANES + j] = w0, w1, w2, w3
                hb[j] = fma(q3, w3, fma(q2, w2, fma(q1, w1, fma(q0, w0, hb[j]))))


@part
def rescaling(W, norm, decay, step, overlap, squares):  # type: ignore[no-untyped-def]
    """norm/‖W⁺‖ for W⁺ = decay·W − step·uxᵀ, from overlap = uᵀWx and squares = ‖u‖²‖x‖²; 0 where W⁺ = 0."""
    after = decay * decay * dot(W, W, W.size) - step * (decay * overlap + decay * overlap - step * squares)
    return norm / np.sqrt(after) if after > 0 else norm - norm


@part
def products(P, X, n, H):  # type: ignore[no-untyped-def]
    """H[i] = W xᵢ for the first n rows of X; whole tiles are computed, X and H have the room."""
    flat, x, h, d, lanes = P.reshape(-1), X.reshape(-1), H.reshape(-1), X.shape[1], np.int64(LANES)
    for b in range(P.shape[0]):
        matmul(x, ZERO, d, ONE, -(-n // TILE) * TILE, d, flat, b * lanes * d, lanes, lanes, h, b * lanes, H.shape[1])


@part
def outer(U, X, n, G):  # type: ignore[no-untyped-def]
    """G = Σᵢ U[i] xᵢᵀ over the first n rows, packed."""
    flat, x, u, d, lanes = G.reshape(-1), X.reshape(-1), U.reshape(-1), X.shape[1], np.int64(LANES)
    for b in range(G.shape[0]):
        matmul(x, ZERO, ONE, d, d, n, u, b * lanes, U.shape[1], lanes, flat, b * lanes * d, lanes)
