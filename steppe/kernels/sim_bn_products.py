"""The two products of a net with simplified BatchNorm with its inputs, for as many neurons as a vector has lanes."""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from steppe.kernels.elementary import evaluate
from steppe.kernels.matrices import (
    ENTRIES,
    ONE,
    ZERO,
    Floats,
    aligned,
    copied,
    fits,
    matmul,
    places,
    sums,
    table_size,
    tabulate,
)
from steppe.kernels.simd import (
    BYTES,
    OPTIONS,
    add,
    fma,
    lanes_of,
    load,
    multiply,
    part,
    slopes,
    store,
    total,
    transpose,
    zeros,
)

# The tables of PERIOD groups of examples are kept at a time, few enough for the nearest cache.
PERIOD = 13


class Dense(NamedTuple):
    """Inputs of any kind, by columns, and room for the examples' h."""

    XT: Floats
    H: Floats


class Signs(NamedTuple):
    """Inputs ±1: the places of the sums for examples and for columns in tables (`matrices.places`), and their room."""

    examples: NDArray[np.uint64]
    columns: NDArray[np.uint64]
    weights: Floats
    ps: Floats


def inputs(X: Floats, XT: Floats, *, tables: bool) -> Dense | Signs:
    """The inputs, as `Signs` if they are signs and `tables` is True. X has no padding, XT has it."""
    lanes = BYTES // XT.itemsize
    if not (tables and fits(X, lanes)):
        return Dense(XT, aligned(XT.shape[1] * lanes, XT.dtype))
    examples, columns = places(X, lanes), places(X.T, lanes, PERIOD)
    weights, ps = (aligned(table_size(k, lanes), XT.dtype) for k in (examples.shape[1], PERIOD))
    return Signs(examples, columns, weights, ps)


def with_own_room(inputs: Dense | Signs) -> Dense | Signs:
    if isinstance(inputs, Dense):
        return Dense(inputs.XT, copied(inputs.H))
    return Signs(inputs.examples, inputs.columns, copied(inputs.weights), copied(inputs.ps))


def products(inputs: Any, activation: Any, n: Any, W: Any, w: Any, example: Any, h: Any, squares: Any, S: Any) -> Any:
    """For the block of columns of weights at W[w]: h of one example, Σᵢ aᵢ² and, at S[w], Σᵢ pᵢ xᵢ′.

    Each kind of inputs overloads it for compiled code; Python cannot call it.
    """
    raise TypeError("products is for compiled code: call it inside a kernel")


@overload(products, jit_options=OPTIONS)
def _products(inputs, activation, n, W, w, example, h, squares, S):  # type: ignore[no-untyped-def]
    return {Dense: _dense, Signs: _signs}[inputs.instance_class]


def _dense(inputs, activation, n, W, w, example, h, squares, S):  # type: ignore[no-untyped-def]
    XT, H = inputs.XT.reshape(-1), inputs.H
    lanes, (columns, stride) = lanes_of(W), inputs.XT.shape
    matmul(XT, ZERO, ONE, stride, stride, columns, W, w, lanes, lanes, H, ZERO, lanes)
    store(h, 0, load(H, example * lanes))
    if activation.smooth:
        _smooth(activation, n, H, squares)
    else:
        _rectified(activation.leak, n, H, squares)
    matmul(XT, ZERO, stride, ONE, columns, n, H, ZERO, lanes, lanes, S, w, lanes)


def _signs(inputs, activation, n, W, w, example, h, squares, S):  # type: ignore[no-untyped-def]
    """The pᵢ of four examples go from registers into a table; activations as in `_rectified`."""
    rows, columns, T, U = inputs.examples.reshape(-1), inputs.columns.reshape(-1), inputs.weights, inputs.ps
    (fours, groups), lanes, zero = inputs.examples.shape, lanes_of(W), zeros(W)
    size, leak, width = ENTRIES * lanes, activation.leak * activation.leak, 4 * len(inputs.columns) * lanes
    for g in range(groups):
        k = w + 4 * g * lanes
        tabulate(load(W, k), load(W, k + lanes), load(W, k + 2 * lanes), load(W, k + 3 * lanes), T, g * size)
    _store(h, 0, sums(T, rows, example // 4 * groups, groups, zero, zero, zero, zero))
    store(h, 0, load(h, example % 4 * lanes))
    for k in range(w, w + width, lanes):
        store(S, k, zero)
    q0, q1, q2, q3 = zero, zero, zero, zero
    for first in range(0, fours, PERIOD):
        last = min(first + PERIOD, fours)
        for k in range(first, last):
            h0, h1, h2, h3 = sums(T, rows, k * groups, groups, zero, zero, zero, zero)
            p0, p1 = multiply(slopes(h0, leak), h0), multiply(slopes(h1, leak), h1)
            p2, p3 = multiply(slopes(h2, leak), h2), multiply(slopes(h3, leak), h3)
            q0, q1, q2, q3 = fma(p0, h0, q0), fma(p1, h1, q1), fma(p2, h2, q2), fma(p3, h3, q3)
            tabulate(p0, p1, p2, p3, U, (k - first) * size)
        k = first
        for to in range(w, w + width, 4 * lanes):
            s0, s1, s2, s3 = load(S, to), load(S, to + lanes), load(S, to + 2 * lanes), load(S, to + 3 * lanes)
            _store(S, to, sums(U, columns, k, last - first, s0, s1, s2, s3))
            k += fours
    store(squares, 0, add(add(q0, q1), add(q2, q3)))


@part
def _store(A, a, vectors):  # type: ignore[no-untyped-def]
    lanes = lanes_of(A)
    store(A, a, vectors[0])
    store(A, a + lanes, vectors[1])
    store(A, a + 2 * lanes, vectors[2])
    store(A, a + 3 * lanes, vectors[3])


@part
def _smooth(activation, n, H, squares):  # type: ignore[no-untyped-def]
    """Σᵢ aᵢ² in each lane, from the hᵢ in H, which become pᵢ."""
    lanes = lanes_of(H)
    store(squares, 0, zeros(H))
    for i in range(n):
        for j in range(lanes):
            a, s = evaluate(activation, H[i * lanes + j])
            H[i * lanes + j] = a * s
            squares[j] += a * a


@part
def _rectified(leak, n, H, squares):  # type: ignore[no-untyped-def]
    """The same for a = h or leak·h, where p = σ′²h and a² = p h.

    Even and odd examples are summed apart, so that an addition need not wait for the one before.
    """
    lanes, zero = lanes_of(H), zeros(H)
    even, odd = zero, zero
    for k in range(0, n * lanes, lanes):
        h = load(H, k)
        p = multiply(slopes(h, leak * leak), h)
        store(H, k, p)
        even, odd = odd, fma(p, h, even)
    store(squares, 0, add(even, odd))


@part
def select_firing(activation, W, gamma, v, x, h, live, room, W_live, gamma_live, v_live):  # type: ignore[no-untyped-def]
    """Copy the neurons that have a value or a slope at x; `live` names them. Returns their number.

    W_live holds blocks of columns with a neuron in each lane of a vector; zeros fill up the last block. The list is
    made without a branch, because no processor can predict which neuron fires.
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
    """The neurons in `live` take a step against their gradients, which are laid out as in `select_firing`."""
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
