"""CIFAR-10 (Krizhevsky 2009), from the batches of its binary version."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from steppe.problems.data.dataset import Dataset
from steppe.problems.data.files.content import content
from steppe.problems.data.files.registry import CIFAR10
from steppe.problems.data.scaling import Scaling, per_feature
from steppe.problems.data.taken import taken

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
