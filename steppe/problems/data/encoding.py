"""Class numbers as real targets, for losses of squares."""

import abc
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from steppe.problems.data.scaling import per_feature

Targets = NDArray[Any]


class Encoding(abc.ABC):
    @abc.abstractmethod
    def __call__(self, train: Targets, test: Targets, classes: int) -> tuple[Targets, Targets]:
        """Real targets with one more axis than the class numbers, the outputs."""


@final
@dataclass(frozen=True)
class OneHot(Encoding):
    """One output a class, `high` for the right one and `low` for the others.

    >>> train, test = one_hot(np.array([1]), np.array([0]), 2)
    >>> train.tolist(), test.tolist()
    ([[0.0, 1.0]], [[1.0, 0.0]])
    """

    low: float = 0.0
    high: float = 1.0

    def __call__(self, train: Targets, test: Targets, classes: int) -> tuple[Targets, Targets]:
        rows = np.where(np.eye(classes, dtype=bool), self.high, self.low).astype(np.float32)
        return rows[train], rows[test]


@final
@dataclass(frozen=True)
class StandardisedClass(Encoding):
    """One output: the class number, less its training mean, over its training standard deviation."""

    def __call__(self, train: Targets, test: Targets, classes: int) -> tuple[Targets, Targets]:
        y, y_test = per_feature(train[:, None].astype(float), test[:, None].astype(float))
        return y.astype(np.float32), y_test.astype(np.float32)


one_hot = OneHot()
signed_one_hot = OneHot(low=-1.0)
standardised_class = StandardisedClass()
