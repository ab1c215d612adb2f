"""Generators of discrete inputs: corners of the hypercube with products as labels, and sequences to reverse."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steppe import check
from steppe.data._dataset import Dataset, Floats, Split

_CORNERS = np.array([(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)])


def xor(d: int, n: int, *, test: int = 0, replace: bool = True, key: int | np.random.Generator = 0) -> Split:
    """P_xor of wen2023: n training and `test` fresh points x uniform on {−1, 1}^d, y = x₁x₂.

    With `replace=False` the training points are distinct; test points are drawn independently of them.

    >>> x, y, _, _ = xor(30, 100, key=0)
    >>> x.shape, bool((y == x[:, 0] * x[:, 1]).all())
    ((100, 30), True)
    """
    d = check.integer("d", d, minimum=2, remedy="The label x₁x₂ needs two coordinates.")
    n = check.integer("n", n, minimum=1)
    test = check.integer("test", test, minimum=0)
    if not replace and d < 63 and n > 2**d:
        check.refuse("n", f"at most 2^d = {2**d} without replacement", n, "Lower n, raise d, or pass replace=True.")
    rng = np.random.default_rng(key)
    x = corners(rng, n, d) if replace else _distinct(rng, d, n)
    x_test = corners(rng, test, d)
    return Split(x, x[:, 0] * x[:, 1], x_test, x_test[:, 0] * x_test[:, 1])


def parity(
    d: int, n: int, coordinates: Sequence[int] = (0, 1), *, test: int = 0, key: int | np.random.Generator = 0
) -> Split:
    """x uniform on {−1, 1}^d, y = Π xᵢ over `coordinates`; `xor` has (0, 1).

    >>> x, y, _, _ = parity(6, 50, (1, 3, 5), key=0)
    >>> bool((y == x[:, 1] * x[:, 3] * x[:, 5]).all())
    True
    """
    d = check.integer("d", d, minimum=1)
    n, test = check.integer("n", n, minimum=1), check.integer("test", test, minimum=0)
    chosen = [check.integer("coordinates", i, minimum=0) for i in coordinates]
    if not chosen or len(set(chosen)) != len(chosen) or max(chosen) >= d:
        rule = f"different numbers from 0 to {d - 1}"
        check.refuse("coordinates", rule, coordinates, "Name the columns of x whose product is the label.")
    rng = np.random.default_rng(key)
    x, x_test = corners(rng, n, d), corners(rng, test, d)
    return Split(x, x[:, chosen].prod(axis=1), x_test, x_test[:, chosen].prod(axis=1))


def complete(d: int, tails: int | None = None, *, test: int = 0, key: int | np.random.Generator = 0) -> Split:
    """A complete training set for xor (Condition 1 of wen2023): {−1, 1}² × S with y = x₁x₂, 4·tails points.

    S has `tails` (by default d − 1) distinct points of {−1, 1}^{d−2}, and the differences S − S span d − 2 dimensions.

    >>> x, y, _, _ = complete(10, key=0)
    >>> x.shape, int(np.linalg.matrix_rank(x[4:, 2:] - x[0, 2:]))
    ((36, 10), 8)
    """
    d = check.integer("d", d, minimum=2, remedy="The label x₁x₂ needs two coordinates.")
    size = d - 1 if tails is None else tails
    size = check.integer("tails", size, minimum=d - 1, remedy="Rank d − 2 needs d − 1 points.")
    test = check.integer("test", test, minimum=0)
    if d - 2 < 63 and size > 2 ** (d - 2):
        rule = f"at most 2^(d−2) = {2 ** (d - 2)}"
        check.refuse("tails", rule, size, "Lower tails: there are no more distinct points.")
    rng = np.random.default_rng(key)
    chosen = _spanning(rng, d - 2, size)
    x = np.concatenate([np.tile(_CORNERS, (size, 1)), np.repeat(chosen, 4, axis=0)], axis=1)
    x_test = corners(rng, test, d)
    return Split(x, x[:, 0] * x[:, 1], x_test, x_test[:, 0] * x_test[:, 1])


def reversal(
    n: int = 1_000,
    *,
    test: int = 1_000,
    length: int = 10,
    symbols: int = 9,
    key: int | np.random.Generator = 0,
) -> Dataset:
    """Sequence reversal of conflicting-biases: x = {"source", "shifted"}, y the reversed source as classes from 0.

    `source` holds uniform symbols 1 … `symbols`. `shifted` is the input of a decoder with teacher forcing: the start
    symbol 0, then the reversed source without its last symbol.

    >>> data = reversal(1, length=4, key=0)
    >>> data.x["source"].tolist(), data.x["shifted"].tolist(), data.y.tolist()
    ([[8, 6, 5, 3]], [[0, 3, 5, 6]], [[2, 4, 5, 7]])
    """
    n, test = check.integer("n", n, minimum=1), check.integer("test", test, minimum=1)
    length, symbols = check.integer("length", length, minimum=1), check.integer("symbols", symbols, minimum=1)
    source = np.random.default_rng(key).integers(1, symbols + 1, (n + test, length), dtype=np.int32)
    target = source[:, ::-1]
    shifted = np.concatenate([np.zeros((n + test, 1), np.int32), target[:, :-1]], axis=1)

    def rows(part: slice) -> dict[str, Any]:
        return {"source": source[part], "shifted": shifted[part]}

    train, held_out = slice(0, n), slice(n, None)
    y = target - 1
    return Dataset(f"reversal-{n}", rows(train), y[train], rows(held_out), y[held_out], classes=symbols)


def corners(rng: np.random.Generator, n: int, d: int) -> Floats:
    """n uniform corners of {−1, 1}^d."""
    return (2.0 * rng.integers(0, 2, (n, d)) - 1.0).astype(np.float64)


def _distinct(rng: np.random.Generator, d: int, n: int) -> Floats:
    if d <= 20:
        codes = rng.choice(2**d, size=n, replace=False)
        return (2.0 * ((codes[:, None] >> np.arange(d)) & 1) - 1.0).astype(np.float64)
    # Above 2^20 corners repeats are rare, or n is huge: repeats are drawn again until none is left.
    x = corners(rng, n, d)
    while True:
        _, first = np.unique(x, axis=0, return_index=True)
        if len(first) == n:
            return x
        repeated = np.setdiff1d(np.arange(n), first)
        x[repeated] = corners(rng, len(repeated), d)


def _spanning(rng: np.random.Generator, k: int, size: int) -> Floats:
    """Distinct corners of {−1, 1}^k whose differences have rank k: k + 1 spanning ones and random others.

    Random draws alone would rarely have the right rank if size = k + 1 and k is small.
    """
    start = corners(rng, 1, k)
    chosen = np.concatenate([start, start * (1 - 2 * np.eye(k))])
    chosen = _random_spanning(rng, chosen)
    while len(chosen) < size:
        together = np.concatenate([chosen, corners(rng, 2 * size, k)])
        _, first = np.unique(together, axis=0, return_index=True)
        chosen = together[np.sort(first)][:size]
    return chosen


def _random_spanning(rng: np.random.Generator, points: Floats) -> Floats:
    """Random corners of the same number that span, if 100 draws give any; else `points`."""
    k = points.shape[1]
    for _ in range(100):
        drawn = corners(rng, *points.shape)
        if len(np.unique(drawn, axis=0)) == len(drawn) and np.linalg.matrix_rank(drawn[1:] - drawn[0]) == k:
            return drawn
    return points
