"""California housing (Pace and Barry 1997): the median house value of 20,640 block groups from eight features."""

from pathlib import Path

import numpy as np

from steppe.problems.data.dataset import Dataset
from steppe.problems.data.files.content import content
from steppe.problems.data.files.registry import HOUSING
from steppe.problems.data.scaling import per_feature
from steppe.problems.data.shuffled import shuffled


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
