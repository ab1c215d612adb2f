"""MNIST (LeCun et al. 2010), from the four idx files."""

from pathlib import Path

import numpy as np

from steppe.problems.data.dataset import Dataset
from steppe.problems.data.files.content import content
from steppe.problems.data.files.registry import MNIST
from steppe.problems.data.idx import idx
from steppe.problems.data.scaling import Scaling, overall
from steppe.problems.data.taken import taken


def mnist(
    n: int | None = None, *, test: int | None = None, scaling: Scaling = overall, folder: Path | None = None
) -> Dataset:
    """The first n training images (all 60,000 unless told) and the first `test` test images, (28, 28, 1) each.

    `scaling` is by one mean and one standard deviation of the n images: many pixels are almost always black, and each
    divided by its own tiny deviation would be huge where it is not.
    """
    x, y, x_test, y_test = (idx(content(MNIST, file.name, folder), file.name) for file in MNIST.files)
    n, test = taken("n", n, len(x)), taken("test", test, len(x_test))
    train_images, test_images = scaling(x[:n, ..., None], x_test[:test, ..., None])
    name = "MNIST" if n == len(x) else f"MNIST-{n}"
    return Dataset(name, train_images, y[:n].astype(np.int32), test_images, y_test[:test].astype(np.int32), classes=10)
