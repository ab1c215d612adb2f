"""Inputs moved to mean 0 and standard deviation 1, by the training set's own statistics."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
