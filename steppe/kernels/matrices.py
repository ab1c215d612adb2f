"""Products of matrices in flat arrays, of packed first-layer weights, of signs by tables, and of firing neurons only.

Products with signs use tables of sums: the method of four Russians (Arlazarov and others, 1970), over the reals.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steppe.kernels.simd import add, at, dot, fma, lanes_of, load, negative, part, store, subtract, total, zeros

TILE = 4
# The integers 0 and 1 with a type, because numba compiles a function again for every literal argument.
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


# First-layer weights are packed in tiles of LANES neurons and ROWS inputs.
LANES, ROWS = 64, 4
Floats = NDArray[np.floating]


def padded(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def aligned(shape: int | tuple[int, ...], dtype: Any) -> Floats:
    """Zeros that begin at a multiple of 64 bytes: then no vector crosses two cache lines, and passes are 1/3 faster."""
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
    """The distance of rows of `columns` numbers, in whole vectors, but never a multiple of 1 KiB.

    Then the same column of many rows falls into different sets of the nearest cache.
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
    """H[i] = W xᵢ for the first n rows of X. It computes whole tiles, so X and H need room for them."""
    flat, x, h, d, lanes = P.reshape(-1), X.reshape(-1), H.reshape(-1), X.shape[1], np.int64(LANES)
    for b in range(P.shape[0]):
        matmul(x, ZERO, d, ONE, -(-n // TILE) * TILE, d, flat, b * lanes * d, lanes, lanes, h, b * lanes, H.shape[1])


@part
def outer(U, X, n, G):  # type: ignore[no-untyped-def]
    """G = Σᵢ U[i] xᵢᵀ over the first n rows, packed."""
    flat, x, u, d, lanes = G.reshape(-1), X.reshape(-1), U.reshape(-1), X.shape[1], np.int64(LANES)
    for b in range(G.shape[0]):
        matmul(x, ZERO, ONE, d, d, n, u, b * lanes, U.shape[1], lanes, flat, b * lanes * d, lanes)


GROUP, ENTRIES = 4, 16
# The place of an entry takes 16 bits, and a word holds four places: reading them one by one costs an eighth more.
_BITS = np.uint64(16)
_MASK = np.uint64(2**16 - 1)


def table_size(groups: int, lanes: int) -> int:
    """How many numbers the tables of `groups` groups of four hold, with the entry 0 after them."""
    return (groups * ENTRIES + 1) * lanes


def fits(X: Floats, lanes: int) -> bool:
    """Whether X holds signs only, in rows short enough for places of 16 bits."""
    return bool((abs(X) == 1).all()) and table_size(padded(X.shape[1], GROUP) // GROUP, lanes) <= int(_MASK)


def places(X: Floats, lanes: int, period: int | None = None) -> NDArray[np.uint64]:
    """A word for every four rows and every group of four columns: the places of the rows' entries in the tables.

    The tables of a group replace those of `period` groups before. Padding rows refer to the entry 0; the caller sets
    the vectors of padding columns to 0.
    """
    rows, columns = X.shape
    groups = padded(columns, GROUP) // GROUP
    period = min(period or groups, groups)
    minus = np.zeros((rows, groups * GROUP), np.int64)
    minus[:, :columns] = X < 0
    entry = np.full((padded(rows, 4), groups), period * ENTRIES)
    entry[:rows] = minus.reshape(rows, groups, GROUP) @ (1 << np.arange(GROUP)) + np.arange(groups) % period * ENTRIES
    fours = (entry * lanes).astype(np.uint64).reshape(-1, 4, groups)
    words: NDArray[np.uint64] = (fours << _BITS * np.arange(4, dtype=np.uint64)[:, None]).sum(1, dtype=np.uint64)
    return words


@part
def tabulate(a, b, c, d, T, t):  # type: ignore[no-untyped-def]
    """The 16 sums ±a ± b ± c ± d from T[t] on: in entry e, term k is negative if bit k of e is 1."""
    lanes = lanes_of(T)
    plus, minus = add(a, b), subtract(a, b)
    same, other = add(c, d), subtract(c, d)
    _pair(add(plus, same), T, t, t + 15 * lanes)
    _pair(add(minus, same), T, t + 2 * lanes, t + 13 * lanes)
    _pair(add(plus, other), T, t + 8 * lanes, t + 7 * lanes)
    _pair(add(minus, other), T, t + 10 * lanes, t + 5 * lanes)
    _pair(subtract(plus, same), T, t + 12 * lanes, t + 3 * lanes)
    _pair(subtract(minus, same), T, t + 14 * lanes, t + lanes)
    _pair(subtract(plus, other), T, t + 4 * lanes, t + 11 * lanes)
    _pair(subtract(minus, other), T, t + 6 * lanes, t + 9 * lanes)


@part
def _pair(x, T, here, there):  # type: ignore[no-untyped-def]
    store(T, here, x)
    store(T, there, negative(x))


@part
def _entries(T, words, k):  # type: ignore[no-untyped-def]
    """The entries of four rows for one group."""
    word = at(words, k)
    return (
        load(T, np.int64(word & _MASK)),
        load(T, np.int64(word >> _BITS & _MASK)),
        load(T, np.int64(word >> 2 * _BITS & _MASK)),
        load(T, np.int64(word >> 3 * _BITS)),
    )


@part
def sums(T, words, k, groups, s0, s1, s2, s3):  # type: ignore[no-untyped-def]
    """s + the sums of the entries of `groups` groups, from word k on, for four rows."""
    for g in range(k, k + groups):
        e0, e1, e2, e3 = _entries(T, words, g)
        s0, s1, s2, s3 = add(s0, e0), add(s1, e1), add(s2, e2), add(s3, e3)
    return s0, s1, s2, s3


@part
def list_firing(a, s, width, stride, rows, neurons):  # type: ignore[no-untyped-def]
    """List the neurons out of `width` with a value or a slope in `neurons` and `rows`; returns how many there are."""
    count = 0
    for j in range(width):  # without a branch, because no processor can predict which neuron fires
        neurons[count] = j
        count += (a[j] != 0) | (s[j] != 0)
    for k in range(count):
        rows[k] = neurons[k] * stride
    return count


@part
def forward(V, rows, shares, count, columns, z):  # type: ignore[no-untyped-def]
    """z = Σ shareₖ · rowₖ over the `count` rows of V of the neurons that fire; W₂ = κVᵀ."""
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

    From the last row to the first, because those that `forward` read last are still in the cache.
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
