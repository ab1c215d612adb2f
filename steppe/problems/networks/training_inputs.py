"""The training inputs that a network with batch statistics carries with it."""

import abc
from typing import Any, final

import numpy as np
from jax import Array

from steppe import check
from steppe.problems.networks.first_layer import Params

# The parameters and inputs that statistics are taken from.
Source = tuple[Params, Array]


@final
class TrainingInputs:
    """A read-only copy of x, equal and hashed by content: equal networks are equal, and share compiled code.

    >>> TrainingInputs([[1.0, 2.0]]) == TrainingInputs(np.array([[1.0, 2.0]]))
    True
    """

    __slots__ = ("_hash", "array")

    def __init__(self, x: Any):
        self.array = np.array(x, dtype=float)
        if self.array.ndim != 2 or self.array.shape[0] == 0:
            check.refuse("x", "one row a training example", f"shape {self.array.shape}", "Pass the problem's inputs.")
        check.finite("x", self.array)
        self.array.setflags(write=False)
        self._hash = hash((self.array.shape, self.array.tobytes()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrainingInputs) and np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return "TrainingInputs({} × {})".format(*self.array.shape)


class OwnStatistics(abc.ABC):
    """A network whose batch statistics are those of the training inputs it carries, whatever x it is given."""

    train: TrainingInputs | Any

    @abc.abstractmethod
    def forward(self, params: Params, x: Array, source: Source | None = None) -> Array:
        """Outputs, with statistics from another source."""

    def __call__(self, params: Params, x: Array) -> Array:
        return self.forward(params, x)
