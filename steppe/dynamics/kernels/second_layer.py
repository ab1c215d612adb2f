"""One pass over the second-layer weights W₂: their update, the product forward and the product back.

A row of W₂ gives one number of z = W₂a, hence of ∂f/∂z, hence its share of the product back, while it lies in the
nearest cache: forward and backward are one pass.
"""

from typing import NamedTuple

import numpy as np

from steppe.dynamics.kernels.compiled import part
from steppe.dynamics.kernels.heads import differentiate
from steppe.dynamics.kernels.simd import fma, lanes_of, load, store, total, zeros
from steppe.dynamics.kernels.sums import dot

# Rows that are worked on together, few enough for the nearest cache.
BLOCK = 16


class Shape(NamedTuple):
    """W₂ lies row by row: `rows` of them with padding, of which `last` are looked at, `columns` numbers each.

    They begin `stride` numbers apart.
    """

    rows: int
    last: int
    columns: int
    stride: int


@part
def sweep(head, shape, W, old, decay, moving, a, shift, v, c, z, delta, out, room, back):  # type: ignore[no-untyped-def]
    """One pass over W₂, which first moves to decay·W₂ − delta oldᵀ if `moving`.

    z = W₂a, f = v · σ(z) with its derivatives delta = ∂f/∂z and out = ∂f/∂v at the point that shift and c say (see
    `differentiate`), and back = W₂ᵀdelta. Returns f, ‖delta‖², ‖out‖² and the product of delta with the one before.
    Rows that do not move are not written, rows without delta not read again.
    """
    f = deltas = outs = overlap = zero = W.dtype.type(0)
    rows, shares, before = np.zeros(BLOCK + 4, np.int64), np.zeros(BLOCK + 4, W.dtype), np.zeros(BLOCK, W.dtype)
    back[:] = zero
    for first in range(0, shape.rows, BLOCK):
        for quad in range(first, first + BLOCK, 4):
            moves = delta[quad] != zero or delta[quad + 1] != zero or delta[quad + 2] != zero or delta[quad + 3] != zero
            if moving and (moves or decay != 1):
                for k in range(quad, quad + 4, 2):
                    _move_and_products(
                        W, k * shape.stride, shape.stride, shape.columns, delta[k:], old, decay, a, z[k:]
                    )
            else:
                _products(W, quad * shape.stride, shape.stride, shape.columns, a, z[quad:])
        for k in range(BLOCK):
            before[k] = delta[first + k]
        width = min(BLOCK, shape.last - first)
        parts = differentiate(head, z[first:], v[first:], shift, c, width, delta[first:], out[first:], room)
        f, deltas, outs = f + parts[0], deltas + parts[1], outs + parts[2]
        overlap += dot(before, delta[first:], len(before))
        live = 0
        for k in range(BLOCK):
            d = delta[first + k]
            rows[live], shares[live] = (first + k) * shape.stride, d
            live += d != zero
        shares[live : live + 4] = zero
        for k in range(0, live, 4):
            _add_rows(W, rows[k:], shares[k:], shape.columns, back)
    return f, deltas, outs, overlap


@part
def _move_and_products(W, row, stride, columns, u, old, decay, a, z):  # type: ignore[no-untyped-def]
    """Two rows of W₂, the first at `row`: row ← decay·row − u·old, and then z = row · a, summed as in `_products`."""
    lanes = lanes_of(W)
    u0, u1 = -u[0], -u[1]
    s0, s1 = zeros(W), zeros(W)
    for j in range(0, columns, lanes):
        x, p, at = load(a, j), load(old, j), row + j
        w0 = fma(u0, p, fma(decay, load(W, at), zeros(W)))
        w1 = fma(u1, p, fma(decay, load(W, at + stride), zeros(W)))
        store(W, at, w0)
        store(W, at + stride, w1)
        s0, s1 = fma(w0, x, s0), fma(w1, x, s1)
    z[0], z[1] = total(s0), total(s1)


@part
def _products(W, row, stride, columns, a, z):  # type: ignore[no-untyped-def]
    """The products of a with four rows of W₂."""
    lanes = lanes_of(W)
    s0, s1, s2, s3 = zeros(W), zeros(W), zeros(W), zeros(W)
    for j in range(0, columns, lanes):
        x, at = load(a, j), row + j
        s0, s1 = fma(load(W, at), x, s0), fma(load(W, at + stride), x, s1)
        s2, s3 = fma(load(W, at + 2 * stride), x, s2), fma(load(W, at + 3 * stride), x, s3)
    z[0], z[1], z[2], z[3] = total(s0), total(s1), total(s2), total(s3)


@part
def _add_rows(W, rows, shares, columns, back):  # type: ignore[no-untyped-def]
    """back += Σ shareₖ · rowₖ for four rows of W₂, given by where they begin."""
    lanes = lanes_of(W)
    r0, r1, r2, r3 = rows[0], rows[1], rows[2], rows[3]
    d0, d1, d2, d3 = shares[0], shares[1], shares[2], shares[3]
    for j in range(0, columns, lanes):
        low = fma(d1, load(W, r1 + j), fma(d0, load(W, r0 + j), load(back, j)))
        store(back, j, fma(d3, load(W, r3 + j), fma(d2, load(W, r2 + j), low)))
