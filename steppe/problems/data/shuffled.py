"""A table divided at random into training and test rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steppe.problems.data.taken import taken

Rows = NDArray[np.int64]


def shuffled(rows: int, n: int | None, test: int | None, key: int | np.random.Generator) -> tuple[Rows, Rows]:
    """Row numbers of n training and `test` test examples; a fifth for testing and the rest for training unless told.

    >>> [len(part) for part in shuffled(10, None, None, 0)]
    [8, 2]
    """
    test = taken("test", test if test is not None else rows // 5, rows - 1, "Leave rows for training.")
    n = taken("n", n, rows - test)
    order: NDArray[Any] = np.random.default_rng(key).permutation(rows)
    # Test rows first: they stay the same when n changes.
    return order[test : test + n], order[:test]
