"""k-parity: x uniform on {−1, 1}^d, y the product of some coordinates."""

from collections.abc import Sequence

import numpy as np

from steppe import check
from steppe.problems.data.hypercube import Split, corners


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
