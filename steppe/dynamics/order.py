"""The order in which examples are visited: a function of the key and the epoch alone, so that any run can resume."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int32]


def block_epochs(n: int) -> int:
    """Orders are drawn a block of epochs at a time: one generator for many epochs, memory bounded."""
    return max(1, 65_536 // n)


@lru_cache(maxsize=4)
def block(key: int, n: int, number: int) -> Indices:
    """The orders of the epochs of one block, a random permutation of the n examples in each row."""
    rng = np.random.default_rng([key, number])
    rows = np.tile(np.arange(n, dtype=np.int32), (block_epochs(n), 1))
    return rng.permuted(rows, axis=1, out=rows)
