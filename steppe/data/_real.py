"""Real data sets: MNIST, CIFAR-10, California housing from files; digits and breast cancer from scikit-learn."""

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from steppe.data._dataset import (
    Dataset,
    Scaling,
    limit_examples,
    overall,
    per_feature,
    random_split,
    standardised_class,
)
from steppe.data._files import content
from steppe.data._registry import CIFAR10, HOUSING, MNIST, DataError

_BATCH = 10_000  # images in a file of CIFAR-10
_TRAIN_BATCHES = [file.name for file in CIFAR10.files if file.name.startswith("data_batch")]
_DIGITS = 1797
_UNSIGNED_BYTES = 8  # the code of the type in an idx file


def breast_cancer(n: int | None = None, *, test: int | None = None, key: int | np.random.Generator = 0) -> Dataset:
    """Breast cancer Wisconsin: 569 tumours, 30 features of their cell nuclei, benign (1) or malignant (0).

    A random fifth is for testing by default. Features have mean 0 and standard deviation 1 on the training rows, and so
    has the target for squared losses (conflicting-biases, section H.14).

    >>> breast_cancer()
    Dataset(breast-cancer: 456 + 113 examples of (30,))
    """
    from sklearn.datasets import load_breast_cancer  # type: ignore[import-untyped]

    features, classes = load_breast_cancer(return_X_y=True)
    train, held_out = random_split(len(classes), n, test, key)
    x, x_test = (a.astype(np.float32) for a in per_feature(features[train], features[held_out]))
    y, y_test = classes[train].astype(np.int32), classes[held_out].astype(np.int32)
    return Dataset("breast-cancer", x, y, x_test, y_test, classes=2, squares=standardised_class)


def cifar10(
    n: int | None = None, *, test: int | None = None, scaling: Scaling = per_feature, folder: Path | None = None
) -> Dataset:
    """CIFAR-10 (Krizhevsky 2009): the first n training and `test` test images, by default all, (32, 32, 3) each.

    Only the files that hold the first n images are needed. Each pixel is scaled by its own mean and deviation over the
    n images, as in the code of Cohen et al. (2021) that conflicting-biases builds on.
    """
    n = limit_examples("n", n, _BATCH * len(_TRAIN_BATCHES))
    test = limit_examples("test", test, _BATCH)
    batches = [_records(name, folder) for name in _TRAIN_BATCHES[: -(-n // _BATCH)]]
    records, test_records = np.concatenate(batches)[:n], _records("test_batch.bin", folder)[:test]
    x, x_test = scaling(_images(records), _images(test_records))
    name = "CIFAR-10" if n == _BATCH * len(_TRAIN_BATCHES) else f"CIFAR-10-{n}"
    y, y_test = (r[:, 0].astype(np.int32) for r in (records, test_records))
    return Dataset(name, x, y, x_test, y_test, classes=10)


def _images(records: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(n, 32, 32, 3); a record is a label byte, then planes of red, green and blue."""
    planes = records[:, 1:].reshape(-1, 3, 32, 32)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1))


def _records(name: str, folder: Path | None) -> NDArray[np.uint8]:
    return np.frombuffer(content(CIFAR10, name, folder), np.uint8).reshape(_BATCH, 3073)


def digits(n: int = 1_000, *, test: int | None = None, scaling: Scaling = overall) -> Dataset:
    """Handwritten digits of scikit-learn: the first n for training, the last `test` for testing, (8, 8, 1) each.

    By default all other images are for testing.


    >>> digits(500)
    Dataset(digits-500: 500 + 1297 examples of (8, 8, 1))
    """
    from sklearn.datasets import load_digits

    n = limit_examples("n", n, _DIGITS - 1, "Leave one for testing.")
    test = limit_examples("test", test, _DIGITS - n)
    loaded = load_digits()
    images, classes = (loaded.images[..., None] / 16).astype(np.float32), loaded.target.astype(np.int32)
    x, x_test = scaling(images[:n], images[_DIGITS - test :])
    return Dataset(f"digits-{n}", x, classes[:n], x_test, classes[_DIGITS - test :], classes=10)


def california_housing(
    n: int | None = None,
    *,
    test: int | None = None,
    folder: Path | None = None,
    key: int | np.random.Generator = 0,
) -> Dataset:
    """California housing (Pace and Barry 1997): the median house value of 20,640 block groups from eight features.

    The features are those of scikit-learn: income, age, rooms, bedrooms and persons a household, population, latitude,
    longitude. A random fifth of the rows is for testing by default. Features and target are scaled to mean 0 and
    standard deviation 1 on the training rows (conflicting-biases, section H.14).
    """
    table = np.loadtxt(content(HOUSING, "cal_housing.data", folder).decode().splitlines(), delimiter=",")
    longitude, latitude, age, rooms, bedrooms, population, households, income, value = table.T
    columns = (
        income,
        age,
        rooms / households,
        bedrooms / households,
        population,
        population / households,
        latitude,
        longitude,
    )
    train, held_out = random_split(len(table), n, test, key)
    features, target = np.stack(columns, axis=1), value[:, None] / 100_000
    x, x_test = per_feature(features[train], features[held_out])
    y, y_test = per_feature(target[train], target[held_out])
    x, y, x_test, y_test = (a.astype(np.float32) for a in (x, y, x_test, y_test))
    return Dataset("california-housing", x, y, x_test, y_test)


def read_idx(content: bytes, name: str) -> NDArray[np.uint8]:
    """The array of an idx file of unsigned bytes, as a read-only view of `content`.

    The format of MNIST: two zero bytes, the type, the number of axes, their lengths, then the entries.

    >>> read_idx(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]), "labels").tolist()
    [7, 9]
    """
    axes = content[3] if len(content) > 4 and content[:3] == bytes([0, 0, _UNSIGNED_BYTES]) else 0
    shape = tuple(int.from_bytes(content[4 + 4 * k : 8 + 4 * k], "big") for k in range(axes))
    if not shape or len(content) != 4 + 4 * axes + math.prod(shape):
        raise DataError(f"{name} is not an idx file of unsigned bytes. Run `steppe data check` to find damaged files.")
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)


def mnist(
    n: int | None = None, *, test: int | None = None, scaling: Scaling = overall, folder: Path | None = None
) -> Dataset:
    """MNIST (LeCun et al. 2010): the first n training and `test` test images, by default all, (28, 28, 1) each.

    By default one mean and one standard deviation of the n images scale all pixels. Many pixels are almost always
    black: divided by their own tiny deviations, they would be huge in the few images where they are not.
    """
    x, y, x_test, y_test = (read_idx(content(MNIST, file.name, folder), file.name) for file in MNIST.files)
    n, test = limit_examples("n", n, len(x)), limit_examples("test", test, len(x_test))
    train_images, test_images = scaling(x[:n, ..., None], x_test[:test, ..., None])
    name = "MNIST" if n == len(x) else f"MNIST-{n}"
    return Dataset(name, train_images, y[:n].astype(np.int32), test_images, y_test[:test].astype(np.int32), classes=10)
