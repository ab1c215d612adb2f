"""g, the weight that the data put on curvature: high at the centre of the training points, 0 outside them."""

from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats


def weight(x: Any, at: Any) -> Floats:
    """g = min(g₊, g₋) at each number of `at`, for training inputs x (mulayoff2021, (S38) to (S40)).

    >>> weight([-1.0, 1.0], [0.0, 2.0]).round(6).tolist()           # ¼ · 1 · √2 at the centre
    [0.353553, 0.0]
    """
    g: Floats = np.minimum(rightward(x, at), leftward(x, at))
    return g


def rightward(x: Any, at: Any) -> Floats:
    """g₊(τ) = P²(X > τ) E[X − τ | X > τ] √(1 + E[X | X > τ]²), X uniform on x; 0 where no X > τ."""
    points, at = training(x), np.asarray(at, dtype=float)
    above = points > at[..., None]
    count = above.sum(axis=-1)
    mean = np.where(above, points, 0.0).sum(axis=-1) / np.maximum(count, 1)
    distance = np.where(above, points - at[..., None], 0.0).sum(axis=-1) / np.maximum(count, 1)
    g: Floats = (count / len(points)) ** 2 * distance * np.sqrt(1 + mean**2)
    return g


def leftward(x: Any, at: Any) -> Floats:
    """g₋, the same for X < τ: g₊ of the mirrored data."""
    return rightward(-training(x), -np.asarray(at, dtype=float))


def training(x: Any) -> Floats:
    """Training inputs on a line, as float64; a column is taken too."""
    points = np.asarray(x, dtype=float)
    if points.ndim == 2 and points.shape[1] == 1:
        points = points[:, 0]
    if points.ndim != 1 or len(points) == 0:
        check.refuse("x", "one number an example", f"shape {points.shape}", "g is defined for inputs on a line.")
    check.finite("x", points)
    return points
