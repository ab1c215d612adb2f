"""The 1,797 handwritten digits of 8 × 8 pixels that come with scikit-learn: real images without any download."""

import numpy as np

from steppe.problems.data.dataset import Dataset
from steppe.problems.data.scaling import Scaling, overall
from steppe.problems.data.taken import taken

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
