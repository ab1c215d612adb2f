"""Data sets as networks take them: `Split` and `Dataset`, scaling of inputs, encoding of class numbers."""

import abc
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import jax
import numpy as np
from numpy.typing import NDArray

from steppe import check
from steppe._guard import guard
from steppe.losses import Loss

Floats = NDArray[np.float64]
Reals = NDArray[np.floating[Any]]
Numbers = NDArray[Any]
Rows = NDArray[np.int64]

# Entries of a piece that is converted to double precision; 256 KB fit into a core's cache.
_PIECE = 1 << 15


class Split(NamedTuple):
    """A training set and a test set, one row an example."""

    x: Floats
    y: Floats
    x_test: Floats
    y_test: Floats


@dataclass(frozen=True)
class Scaling:
    """(x − mean)/std for both sets, with mean and std over `axes` of the training set (over all axes if None).

    A feature that is constant on the training set is centred and not scaled.

    >>> train, test = per_feature(np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([[4.0, 6.0]]))
    >>> train.tolist(), test.tolist()
    ([[-1.0, 0.0], [1.0, 0.0]], [[2.0, 1.0]])
    """

    axes: tuple[int, ...] | None

    @guard
    def __call__(self, train: Numbers, test: Numbers) -> tuple[Reals, Reals]:
        """Scaled arrays, in single precision for bytes, else in the precision of the arrays."""
        dtype = train.dtype if np.issubdtype(train.dtype, np.floating) else np.dtype(np.float32)
        mean: Reals = np.asarray(np.mean(train, axis=self.axes, keepdims=True, dtype=np.float64))
        std = self._deviation(train, mean)
        factor = (1 / np.where(std > 0, std, 1.0)).astype(dtype)
        scaled, scaled_test = (np.subtract(x, mean.astype(dtype), dtype=dtype) for x in (train, test))
        scaled *= factor
        scaled_test *= factor
        return scaled, scaled_test

    def _deviation(self, train: Numbers, mean: Reals) -> Reals:
        """In double precision, in small pieces: all of MNIST would be 376 MB."""
        total, rows = np.zeros_like(mean), max(1, _PIECE * len(train) // train.size)
        for start in range(0, len(train), rows):
            piece = train[start : start + rows] - mean
            piece *= piece
            total += np.sum(piece, axis=self.axes, keepdims=True)
        return np.sqrt(total * (total.size / train.size))


per_feature = Scaling((0,))
overall = Scaling(None)
per_channel = Scaling((0, 1, 2))


class Encoding(abc.ABC):
    """How squared losses see class numbers: as real targets."""

    @abc.abstractmethod
    @guard
    def __call__(self, train: Numbers, test: Numbers, classes: int) -> tuple[Numbers, Numbers]:
        """Real targets; their last axis is that of the outputs."""


@final
@dataclass(frozen=True)
class OneHot(Encoding):
    """One output a class: `high` for the right class and `low` for the others.

    >>> train, test = one_hot(np.array([1]), np.array([0]), 2)
    >>> train.tolist(), test.tolist()
    ([[0.0, 1.0]], [[1.0, 0.0]])
    """

    low: float = 0.0
    high: float = 1.0

    @guard
    def __call__(self, train: Numbers, test: Numbers, classes: int) -> tuple[Numbers, Numbers]:
        rows = np.where(np.eye(classes, dtype=bool), self.high, self.low).astype(np.float32)
        return rows[train], rows[test]


@final
@dataclass(frozen=True)
class StandardisedClass(Encoding):
    """One output: the class number with mean 0 and standard deviation 1 on the training set."""

    @guard
    def __call__(self, train: Numbers, test: Numbers, classes: int) -> tuple[Numbers, Numbers]:
        y, y_test = per_feature(train[:, None].astype(float), test[:, None].astype(float))
        return y.astype(np.float32), y_test.astype(np.float32)


one_hot = OneHot()
signed_one_hot = OneHot(low=-1.0)
standardised_class = StandardisedClass()


class Supervised(NamedTuple):
    """Inputs and targets for one loss, one row an example, and the number of outputs of the network."""

    x: Any
    y: NDArray[Any]
    x_test: Any
    y_test: NDArray[Any]
    outputs: int


@dataclass(frozen=True, eq=False)
class Dataset:
    """A training set and a test set; `y` holds class numbers, or real targets (n, outputs) if `classes` is None.

    `squares` encodes class numbers for squared losses, as 0 and 1 by default (Cohen et al. 2021).
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
        """The shape of one example; a pytree of shapes if x is a pytree."""
        return jax.tree.map(lambda a: a.shape[1:], self.x)

    def encoded(self, squares: Encoding) -> "Dataset":
        """The same data with another encoding for squared losses."""
        return replace(self, squares=squares)

    def supervised(self, loss: Loss) -> Supervised:
        """Data for a loss: class numbers for cross-entropy, ±1 for logistic, else `squares`; real targets stay."""
        y, y_test, outputs = self._targets(loss)
        return Supervised(self.x, y, self.x_test, y_test, outputs)

    def _targets(self, loss: Loss) -> tuple[NDArray[Any], NDArray[Any], int]:
        if self.classes is None:
            if loss.name in ("cross_entropy", "logistic"):
                remedy = "Take steppe.losses.half_mse, or data with classes."
                check.refuse("loss", f"a loss for the real targets of {self.name}", loss.name, remedy)
            return self.y, self.y_test, self.y.shape[-1]
        if loss.name == "cross_entropy":
            return self.y, self.y_test, self.classes
        if loss.name == "logistic":
            if self.classes != 2:
                remedy = "Take steppe.losses.cross_entropy."
                check.refuse("loss", f"a loss for the {self.classes} classes of {self.name}", "logistic", remedy)
            signs = [(2.0 * y[..., None] - 1.0).astype(np.float32) for y in (self.y, self.y_test)]
            return signs[0], signs[1], 1
        y, y_test = self.squares(self.y, self.y_test, self.classes)
        return y, y_test, y.shape[-1]


def limit_examples(argument: str, n: int | None, available: int, remedy: str = "Ask for fewer.") -> int:
    """Returns `available` if `n` is None; raises if `n` is larger."""
    if n is None:
        return available
    count = check.integer(argument, n, minimum=1)
    if count > available:
        check.refuse(argument, f"at most {available:,}", n, remedy)
    return count


def random_split(rows: int, n: int | None, test: int | None, key: int | np.random.Generator) -> tuple[Rows, Rows]:
    """Row numbers of n training and `test` test examples; by default a fifth for testing, the rest for training.

    >>> [len(part) for part in random_split(10, None, None, 0)]
    [8, 2]
    """
    test = limit_examples("test", test if test is not None else rows // 5, rows - 1, "Leave rows for training.")
    n = limit_examples("n", n, rows - test)
    order: NDArray[Any] = np.random.default_rng(key).permutation(rows)
    # Test rows come first, so that they stay the same when n changes.
    return order[test : test + n], order[:test]
