"""P_xor of wen2023: x uniform on {−1, 1}^d, y = x₁x₂."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steppe import check

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
