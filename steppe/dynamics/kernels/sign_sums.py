"""Products with a matrix of signs by tables: the method of four Russians (Arlazarov and others, 1970), over the reals.

Four vectors have 16 sums with signs. Once these are in a table, in the nearest cache, every four signs of a row cost
one addition instead of four multiplications and additions.
"""

import numpy as np
from numpy.typing import NDArray

from steppe.dynamics.kernels.compiled import part
from steppe.dynamics.kernels.packed import Floats, padded
from steppe.dynamics.kernels.simd import add, at, lanes_of, load, negative, store, subtract

GROUP, ENTRIES = 4, 16
# Where an entry lies is written in 16 bits, and four of them in a word: reading each by itself costs an eighth more.
_BITS = np.uint64(16)
_MASK = np.uint64(2**16 - 1)


def table_size(groups: int, lanes: int) -> int:
    """Numbers in the tables of so many groups of four, and in the entry 0 after them."""
    return (groups * ENTRIES + 1) * lanes


def fits(X: Floats, lanes: int) -> bool:
    """Whether these are signs, in rows not too long for places of 16 bits."""
    return bool((abs(X) == 1).all()) and table_size(padded(X.shape[1], GROUP) // GROUP, lanes) <= int(_MASK)


def places(X: Floats, lanes: int, period: int | None = None) -> NDArray[np.uint64]:
    """A word for every four rows and every group of four columns: where the rows' entries lie.

    The tables of later groups replace those of `period` groups before. Rows beyond the last find the entry 0, and
    columns beyond the last are to have vectors 0.
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
    """The 16 sums ±a ± b ± c ± d from T[t] on; the bits of an entry's number, from the lowest, say what is minus."""
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
