"""The way steps are carried out: compiled by JAX for any network, or by a kernel for a known one."""

import enum
from typing import Any, Protocol

from jax import Array

from steppe.dynamics.order import Indices


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
