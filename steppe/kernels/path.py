"""`Path`, which carries out many steps in one call; and the random order of the examples."""

import abc
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe.outcome import Halt

Indices = NDArray[np.int32]


class Coarser(Protocol):
    """What a path must know of the run before this one: its end, its error, and the gradients of that run alone."""

    @property
    def w(self) -> Any: ...

    @property
    def error(self) -> float | None: ...

    @property
    def alone(self) -> int: ...


class Path(abc.ABC):
    """Carries out many steps of one dynamics in one call. How a run is cut into calls never changes a bit of it.

    JAX compiles the path of an unknown network; a kernel is the path of a known one.
    """

    @abc.abstractmethod
    def start(self, w: Array) -> Any:
        """The state at w."""

    @abc.abstractmethod
    def position(self, state: Any) -> Array:
        """The flat vector w of a state."""

    @abc.abstractmethod
    def advance(
        self, state: Any, orders: Indices | None, *, first: int, offset: int, count: int, target: float
    ) -> tuple[Any, int, Halt]:
        """`count` steps from step `first` of the run, which is step `offset` of the block of orders.

        Returns the new state, the number of steps done and why the path halted. A step whose batch has a loss that is
        not finite is not done (DIVERGED). A full-batch path also halts at a loss ≤ target (REACHED), and where a step
        changes nothing (STALLED). A flow also halts at its last time (ENDED).
        """

    def time(self, state: Any) -> float | None:
        """The time of a flow; None for a dynamics that counts steps."""
        return None

    def loss(self, state: Any) -> float | None:
        """The loss of all examples, where the state holds it."""
        return None

    def passed(self, state: Any) -> list[float]:
        """The chosen times that lie within the last step of a flow."""
        return []

    def at(self, state: Any, time: float) -> Array:
        """w at a time within the last step of a flow."""
        raise TypeError("only a flow has times")

    def gradients(self, state: Any) -> int:
        """The gradients of this run alone, where finer runs may follow it."""
        return 0

    def is_whole(self, state: Any, halt: Halt) -> bool:
        """Whether a run that halted here can be compared with a finer one."""
        return False

    def finer(self, state: Any, halt: Halt, coarser: Coarser | None) -> Any:
        """The start of a finer run of the same, where the error of this one is too large; None if it is not."""
        return None

    def error(self, state: Any, coarser: Coarser | None) -> float | None:
        """The estimated error of the end; None if it is not known."""
        return None


def block_epochs(n: int) -> int:
    """Epochs in a block of orders: one generator serves many epochs, and memory stays bounded."""
    return max(1, 65_536 // n)


@lru_cache(maxsize=4)
def block(key: int, n: int, number: int) -> Indices:
    """The orders of the epochs of one block: each row is a random permutation of the n examples.

    They depend on the key and the number of the block alone, so that any run can resume.
    """
    rng = np.random.default_rng([key, number])
    rows = np.tile(np.arange(n, dtype=np.int32), (block_epochs(n), 1))
    return rng.permuted(rows, axis=1, out=rows)
