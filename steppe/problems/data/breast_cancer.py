"""Breast cancer Wisconsin: 569 tumours, 30 features of their cell nuclei, benign (1) or malignant (0)."""

import numpy as np

from steppe.problems.data.dataset import Dataset
from steppe.problems.data.encoding import standardised_class
from steppe.problems.data.scaling import per_feature
from steppe.problems.data.shuffled import shuffled


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
