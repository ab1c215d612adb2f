"""Generators on the hypercube and of sequences: xor, parity, completions, mixtures, label noise, reversal."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steppe import check
from steppe.data._dataset import Dataset

# P_xor of wen2023: x uniform on {−1, 1}^d, y = x₁x₂.

Floats = NDArray[np.float64]


class Split(NamedTuple):
    """A training set and a test set, one row an example."""

    x: Floats
    y: Floats
    x_test: Floats
    y_test: Floats


def xor(d: int, n: int, *, test: int = 0, replace: bool = True, key: int | np.random.Generator = 0) -> Split:
    """n training and `test` fresh points of P_xor: x uniform on {−1, 1}^d, y = x₁x₂.

    With `replace=False` the training points are distinct. Test points are drawn independently of them.

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


def corners(rng: np.random.Generator, n: int, d: int) -> Floats:
    """n uniform corners of {−1, 1}^d."""
    return (2.0 * rng.integers(0, 2, (n, d)) - 1.0).astype(np.float64)


def _distinct(rng: np.random.Generator, d: int, n: int) -> Floats:
    if d <= 20:
        codes = rng.choice(2**d, size=n, replace=False)
        return (2.0 * ((codes[:, None] >> np.arange(d)) & 1) - 1.0).astype(np.float64)
    # Above 2^20 corners a repeat among n is rare or n is huge: draw again until none is left.
    x = corners(rng, n, d)
    while True:
        _, first = np.unique(x, axis=0, return_index=True)
        if len(first) == n:
            return x
        repeated = np.setdiff1d(np.arange(n), first)
        x[repeated] = corners(rng, len(repeated), d)


# k-parity: x uniform on {−1, 1}^d, y the product of some coordinates.


def parity(
    d: int, n: int, coordinates: Sequence[int] = (0, 1), *, test: int = 0, key: int | np.random.Generator = 0
) -> Split:
    """x uniform on {−1, 1}^d, y = Π xᵢ over `coordinates`; P_xor has (0, 1).

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


# Complete training sets for xor: Condition 1 of wen2023.

_CORNERS = np.array([(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)])


def complete(d: int, tails: int | None = None, *, test: int = 0, key: int | np.random.Generator = 0) -> Split:
    """{−1, 1}² × S with y = x₁x₂, S of `tails` (by default d − 1) distinct points of {−1, 1}^{d−2}.

    The differences S − S span all d − 2 dimensions, as Condition 1 asks; there are 4·tails training points.

    >>> x, y, _, _ = complete(10, key=0)
    >>> x.shape, int(np.linalg.matrix_rank(x[4:, 2:] - x[0, 2:]))
    ((36, 10), 8)
    """
    d = check.integer("d", d, minimum=2, remedy="The label x₁x₂ needs two coordinates.")
    size = check.integer("tails", d - 1 if tails is None else tails, minimum=d - 1, remedy="Rank d − 2 needs d − 1.")
    test = check.integer("test", test, minimum=0)
    if d - 2 < 63 and size > 2 ** (d - 2):
        rule = f"at most 2^(d−2) = {2 ** (d - 2)}"
        check.refuse("tails", rule, size, "There are no more distinct tails.")
    rng = np.random.default_rng(key)
    chosen = _spanning(rng, d - 2, size)
    x = np.concatenate([np.tile(_CORNERS, (size, 1)), np.repeat(chosen, 4, axis=0)], axis=1)
    x_test = corners(rng, test, d)
    return Split(x, x[:, 0] * x[:, 1], x_test, x_test[:, 0] * x_test[:, 1])


def _spanning(rng: np.random.Generator, k: int, size: int) -> Floats:
    """Distinct corners of {−1, 1}^k whose differences have rank k: a random corner, its k neighbours, random others.

    Drawing until the rank is right would take for ever where size = k + 1 and k is small.
    """
    start = corners(rng, 1, k)
    chosen = np.concatenate([start, start * (1 - 2 * np.eye(k))])
    chosen = _mixed(rng, chosen)
    while len(chosen) < size:
        together = np.concatenate([chosen, corners(rng, 2 * size, k)])
        _, first = np.unique(together, axis=0, return_index=True)
        chosen = together[np.sort(first)][:size]
    return chosen


def _mixed(rng: np.random.Generator, points: Floats) -> Floats:
    """A random spanning set in place of the neighbours, where one is drawn within a few tries."""
    k = points.shape[1]
    for _ in range(100):
        drawn = corners(rng, *points.shape)
        if len(np.unique(drawn, axis=0)) == len(drawn) and np.linalg.matrix_rank(drawn[1:] - drawn[0]) == k:
            return drawn
    return points


# Gaussian mixtures: a label for each centre, and noise around it.


def gaussian_mixture(
    centres: Any,
    labels: Any,
    n: int,
    *,
    spread: float = 1.0,
    test: int = 0,
    key: int | np.random.Generator = 0,
) -> Split:
    """x = centre_c + spread · N(0, I), y = labels[c], c uniform over the rows of `centres` (k, d).

    >>> x, y, _, _ = gaussian_mixture([[3.0, 0.0], [-3.0, 0.0]], [1.0, -1.0], 100, spread=0.5, key=0)
    >>> bool((np.sign(x[:, 0]) == y).all())                         # six standard deviations apart from 0
    True
    """
    middles, values = np.asarray(centres, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if middles.ndim != 2 or middles.size == 0:
        check.refuse("centres", "of shape (k, d), one row a component", middles.shape, "Reshape it.")
    if values.shape != (len(middles),):
        check.refuse("labels", f"of shape ({len(middles)},), one a component", values.shape, "Give each its label.")
    check.finite("centres", middles)
    check.finite("labels", values)
    n, test = check.integer("n", n, minimum=1), check.integer("test", test, minimum=0)
    spread = check.number("spread", spread, minimum=0.0)
    rng = np.random.default_rng(key)
    component = rng.integers(0, len(middles), n + test)
    x = middles[component] + spread * rng.standard_normal((n + test, middles.shape[1]))
    y = values[component]
    return Split(x[:n], y[:n], x[n:], y[n:])


def xor_mixture(d: int, n: int, *, spread: float = 0.3, test: int = 0, key: int | np.random.Generator = 0) -> Split:
    """Four components around (±1, ±1, 0, …), y = the product of the two signs: P_xor with Gaussian clouds."""
    d = check.integer("d", d, minimum=2, remedy="The four centres need two coordinates.")
    centres: Floats = np.zeros((4, d))
    centres[:, :2] = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    return gaussian_mixture(centres, [1, -1, -1, 1], n, spread=spread, test=test, key=key)


# Wrong labels on purpose: flipped signs, or Gaussian noise added once.


def flipped(y: Any, probability: float, *, key: int | np.random.Generator = 0) -> Floats:
    """−yᵢ with the given probability, each i on its own; yᵢ otherwise.

    >>> flipped([1.0, -1.0, 2.0], 1.0).tolist()
    [-1.0, 1.0, -2.0]
    """
    p = check.number("probability", probability, minimum=0.0)
    if p > 1:
        check.refuse("probability", "at most 1", probability, "Pass the share of labels to flip.")
    labels = np.asarray(y, dtype=np.float64)
    flips = np.random.default_rng(key).random(labels.shape) < p
    return np.where(flips, -labels, labels)


def perturbed(y: Any, sigma: float, *, key: int | np.random.Generator = 0) -> Floats:
    """yᵢ + N(0, σ²), drawn once (label-noise SGD draws anew each step).

    >>> perturbed([1.0, 2.0], 0.0).tolist()
    [1.0, 2.0]
    """
    sigma = check.number("sigma", sigma, minimum=0.0)
    labels = np.asarray(y, dtype=np.float64)
    noisy: Floats = labels + sigma * np.random.default_rng(key).standard_normal(labels.shape)
    return noisy


# Sequence reversal of conflicting-biases: symbols in, the same symbols out from the last to the first.


def reversal(
    n: int = 1_000,
    *,
    test: int = 1_000,
    length: int = 10,
    symbols: int = 9,
    key: int | np.random.Generator = 0,
) -> Dataset:
    """x = {"source", "shifted"}, sequences of symbols 1 … `symbols` and what the decoder sees of their reversal.

    Symbols are uniform. Teacher forcing: `shifted` is the reversed sequence with 0, the start, in front and without its
    last symbol. y is the reversed sequence as class numbers, from 0.

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
