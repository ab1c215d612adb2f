"""A data set as networks take it: its split, the scaling of inputs, the encoding of labels, noise on labels."""

import abc
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import jax
import numpy as np
from numpy.typing import NDArray

from steppe import check
from steppe.losses import Loss

# Inputs moved to mean 0 and standard deviation 1, by the training set's own statistics.

Reals = NDArray[np.floating[Any]]
Numbers = NDArray[Any]

# Numbers of double precision at a time.
_PIECE = 1 << 15


@dataclass(frozen=True)
class Scaling:
    """(x − mean)/std over `axes` of the training set (None: over everything), the same for the test set.

    A feature that is constant on the training set is only centred.

    >>> train, test = per_feature(np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([[4.0, 6.0]]))
    >>> train.tolist(), test.tolist()
    ([[-1.0, 0.0], [1.0, 0.0]], [[2.0, 1.0]])
    """

    axes: tuple[int, ...] | None

    def __call__(self, train: Numbers, test: Numbers) -> tuple[Reals, Reals]:
        """In single precision for images of bytes, else in the precision of the arrays."""
        dtype = train.dtype if np.issubdtype(train.dtype, np.floating) else np.dtype(np.float32)
        mean: Reals = np.asarray(np.mean(train, axis=self.axes, keepdims=True, dtype=np.float64))
        std = self._deviation(train, mean)
        factor = (1 / np.where(std > 0, std, 1.0)).astype(dtype)
        scaled, scaled_test = (np.subtract(x, mean.astype(dtype), dtype=dtype) for x in (train, test))
        scaled *= factor
        scaled_test *= factor
        return scaled, scaled_test

    def _deviation(self, train: Numbers, mean: Reals) -> Reals:
        """To double precision, in pieces that stay in the processor's cache: full MNIST would be 376 MB."""
        total, rows = np.zeros_like(mean), max(1, _PIECE * len(train) // train.size)
        for start in range(0, len(train), rows):
            piece = train[start : start + rows] - mean
            piece *= piece
            total += np.sum(piece, axis=self.axes, keepdims=True)
        return np.sqrt(total * (total.size / train.size))


per_feature = Scaling((0,))
overall = Scaling(None)
per_channel = Scaling((0, 1, 2))


# Class numbers as real targets, for losses of squares.

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


# Real data with a test set, and its targets as each loss takes them.


class Supervised(NamedTuple):
    """Inputs and targets for one loss, one row an example, and the number of outputs that the network needs."""

    x: Any
    y: NDArray[Any]
    x_test: Any
    y_test: NDArray[Any]
    outputs: int


@dataclass(frozen=True, eq=False)
class Dataset:
    """`y` are class numbers where there are `classes`, else real targets (n, outputs).

    `squares` makes real targets of class numbers for losses of squares; the paper follows Cohen et al. (2021): 0 and 1.
    """

    name: str
    x: Any
    y: NDArray[Any]
    x_test: Any
    y_test: NDArray[Any]
    classes: int | None = None
    squares: Encoding = one_hot

    def __repr__(self) -> str:
        return f"Dataset({self.name}: {len(self.y)} + {len(self.y_test)} examples of {self.shape})"

    @property
    def shape(self) -> Any:
        """The shape of one example; a pytree of shapes where x is one."""
        return jax.tree.map(lambda a: a.shape[1:], self.x)

    def encoded(self, squares: Encoding) -> "Dataset":
        """The same with another encoding for losses of squares."""
        return replace(self, squares=squares)

    def supervised(self, loss: Loss) -> Supervised:
        """Class numbers for cross-entropy, ±1 for the logistic loss, `squares` for the others; real targets stay."""
        y, y_test, outputs = self._targets(loss)
        return Supervised(self.x, y, self.x_test, y_test, outputs)

    def _targets(self, loss: Loss) -> tuple[NDArray[Any], NDArray[Any], int]:
        if self.classes is None:
            if loss.name in ("cross_entropy", "logistic"):
                remedy = "Take steppe.losses.half_mse, or data with classes."
                check.refuse("loss", f"one for real targets, which {self.name} has", loss.name, remedy)
            return self.y, self.y_test, self.y.shape[-1]
        if loss.name == "cross_entropy":
            return self.y, self.y_test, self.classes
        if loss.name == "logistic":
            if self.classes != 2:
                remedy = f"{self.name} has {self.classes}: take steppe.losses.cross_entropy."
                check.refuse("loss", "one for more than two classes", "logistic", remedy)
            signs = [(2.0 * y[..., None] - 1.0).astype(np.float32) for y in (self.y, self.y_test)]
            return signs[0], signs[1], 1
        y, y_test = self.squares(self.y, self.y_test, self.classes)
        return y, y_test, y.shape[-1]


# How many examples of those there are.


def taken(argument: str, asked: int | None, there: int, remedy: str = "Ask for fewer.") -> int:
    """All of them unless told; refused where there are not so many."""
    if asked is None:
        return there
    count = check.integer(argument, asked, minimum=1)
    if count > there:
        check.refuse(argument, f"at most {there:,}", asked, remedy)
    return count


# A table divided at random into training and test rows.

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
