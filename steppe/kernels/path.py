"""How many steps are carried out in one call, why they halt, and the order of examples."""

import enum
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from jax import Array
from numpy.typing import NDArray

# The order in which examples are visited: a function of the key and the epoch alone, so that any run can resume.

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


# The way steps are carried out: compiled by JAX for any network, or by a kernel for a known one.


class Halt(enum.IntEnum):
    """Why a path stopped before the steps asked for."""

    NOT = 0
    REACHED = 1
    DIVERGED = 2
    STALLED = 3
    ENDED = 4


class Path(Protocol):
    """Carries out many steps in one call; splitting the calls never changes a bit of the result."""

    def start(self, w: Array) -> Any: ...

    def position(self, state: Any) -> Array: ...

    def advance(
        self, state: Any, orders: Indices | None, *, first: int, offset: int, count: int, target: float
    ) -> tuple[Any, int, Halt]:
        """`count` steps from step `first` of the run, which is step `offset` of the block of orders.

        Returns the state, the steps really done and why it halted. A step whose batch has a loss that is not
        finite is not done (DIVERGED); a full-batch path also halts at a loss ≤ target (REACHED) and where
        a step changes nothing (STALLED); a flow also at the time asked for (ENDED).
        """
        ...
