"""Real data sets: MNIST, CIFAR-10, California housing from files; digits and breast cancer from scikit-learn."""

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from steppe.data._dataset import Dataset, Scaling, overall, per_feature, shuffled, standardised_class, taken
from steppe.data._formats import content
from steppe.data._registry import CIFAR10, HOUSING, MNIST, DataError

# Breast cancer Wisconsin: 569 tumours, 30 features of their cell nuclei, benign (1) or malignant (0).


def breast_cancer(n: int | None = None, *, test: int | None = None, key: int | np.random.Generator = 0) -> Dataset:
    """From scikit-learn; a fifth, drawn at random, for testing unless told.

    Features have mean 0 and standard deviation 1 on the training rows, and so has the target for losses of squares
    (conflicting-biases, section H.14); cross-entropy takes class numbers and the logistic loss ±1.

    >>> breast_cancer()
    Dataset(breast-cancer: 456 + 113 examples of (30,))
    """
    from sklearn.datasets import load_breast_cancer  # type: ignore[import-untyped]

    features, classes = load_breast_cancer(return_X_y=True)
    train, held_out = shuffled(len(classes), n, test, key)
    x, x_test = (a.astype(np.float32) for a in per_feature(features[train], features[held_out]))
    y, y_test = classes[train].astype(np.int32), classes[held_out].astype(np.int32)
    return Dataset("breast-cancer", x, y, x_test, y_test, classes=2, squares=standardised_class)


# CIFAR-10 (Krizhevsky 2009), from the batches of its binary version.

BATCH = 10_000
_TRAIN = [file.name for file in CIFAR10.files if file.name.startswith("data_batch")]


def cifar10(
    n: int | None = None, *, test: int | None = None, scaling: Scaling = per_feature, folder: Path | None = None
) -> Dataset:
    """The first n training images (all 50,000 unless told) and the first `test` test images, (32, 32, 3) each.

    Only the batches that hold the first n need be there. Each pixel is scaled by its own mean and deviation over the n
    images, as in the code of Cohen et al. (2021) that the paper builds on.
    """
    n = taken("n", n, BATCH * len(_TRAIN))
    test = taken("test", test, BATCH)
    batches = [_records(name, folder) for name in _TRAIN[: -(-n // BATCH)]]
    records, test_records = np.concatenate(batches)[:n], _records("test_batch.bin", folder)[:test]
    x, x_test = scaling(_images(records), _images(test_records))
    name = "CIFAR-10" if n == BATCH * len(_TRAIN) else f"CIFAR-10-{n}"
    y, y_test = (r[:, 0].astype(np.int32) for r in (records, test_records))
    return Dataset(name, x, y, x_test, y_test, classes=10)


def _images(records: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Planes of red, green and blue behind a label byte, as (n, 32, 32, 3)."""
    planes = records[:, 1:].reshape(-1, 3, 32, 32)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1))


def _records(name: str, folder: Path | None) -> NDArray[np.uint8]:
    return np.frombuffer(content(CIFAR10, name, folder), np.uint8).reshape(BATCH, 3073)


# The 1,797 handwritten digits of 8 × 8 pixels that come with scikit-learn: real images without any download.

SIZE = 1797


def digits(n: int = 1_000, *, test: int | None = None, scaling: Scaling = overall) -> Dataset:
    """The first n images for training and the last `test` (all others unless told) for testing, (8, 8, 1) each.

    >>> digits(500)
    Dataset(digits-500: 500 + 1297 examples of (8, 8, 1))
    """
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    n = taken("n", n, SIZE - 1, "One must be left for testing.")
    test = taken("test", test, SIZE - n)
    loaded = load_digits()
    images, classes = (loaded.images[..., None] / 16).astype(np.float32), loaded.target.astype(np.int32)
    x, x_test = scaling(images[:n], images[SIZE - test :])
    return Dataset(f"digits-{n}", x, classes[:n], x_test, classes[SIZE - test :], classes=10)


# California housing (Pace and Barry 1997): the median house value of 20,640 block groups from eight features.


def california_housing(
    n: int | None = None,
    *,
    test: int | None = None,
    folder: Path | None = None,
    key: int | np.random.Generator = 0,
) -> Dataset:
    """Income, age, rooms, bedrooms and persons a household, population, latitude, longitude, as scikit-learn has them.

    A fifth of the rows, drawn at random, is for testing unless told. Features and target have mean 0 and standard
    deviation 1 on the training rows, the test rows are moved alike (conflicting-biases, section H.14).
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
    train, held_out = shuffled(len(table), n, test, key)
    features, target = np.stack(columns, axis=1), value[:, None] / 100_000
    x, x_test = per_feature(features[train], features[held_out])
    y, y_test = per_feature(target[train], target[held_out])
    x, y, x_test, y_test = (a.astype(np.float32) for a in (x, y, x_test, y_test))
    return Dataset("california-housing", x, y, x_test, y_test)


# The idx format of MNIST: two zero bytes, the type, the number of axes, their lengths, then the bytes.

_UNSIGNED_BYTES = 8


def idx(content: bytes, name: str) -> NDArray[np.uint8]:
    """The array of a file of unsigned bytes; read-only, since it is the file's own content.

    >>> idx(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]), "labels").tolist()
    [7, 9]
    """
    axes = content[3] if len(content) > 4 and content[:3] == bytes([0, 0, _UNSIGNED_BYTES]) else 0
    shape = tuple(int.from_bytes(content[4 + 4 * k : 8 + 4 * k], "big") for k in range(axes))
    if not shape or len(content) != 4 + 4 * axes + math.prod(shape):
        raise DataError(f"{name} is no idx file of unsigned bytes. `steppe data check` tells which file is wrong.")
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)


# MNIST (LeCun et al. 2010), from the four idx files.


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
