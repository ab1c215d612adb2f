"""Training sets as arguments of theory: checked, in float64, on request without repeated inputs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steppe import check
from steppe._guard import guard

__all__ = ["Floats", "Params", "appended_norm", "distinct", "examples", "inputs"]

Floats = NDArray[np.float64]
Params = dict[str, Floats]


def __dir__() -> list[str]:
    return list(__all__)


@guard
def inputs(x: Any, *, name: str = "x", minimum_d: int = 1) -> Floats:
    """x as float64 (n, d) with n ≥ 1."""
    points = np.asarray(x, dtype=np.float64)
    if points.ndim != 2 or len(points) == 0 or points.shape[1] < minimum_d:
        rule = f"of shape (n, d), one row for each example, with n ≥ 1 and d ≥ {minimum_d}"
        check.refuse(name, rule, points.shape, "Reshape it, or add a coordinate.")
    check.finite(name, points)
    return points


@guard
def examples(x: Any, y: Any) -> tuple[Floats, Floats]:
    """x (n, d) and y (n,) as float64."""
    points, labels = inputs(x), np.asarray(y, dtype=np.float64)
    if labels.shape != (len(points),):
        rule = f"of shape ({len(points)},), one label for each row of x"
        check.refuse("y", rule, labels.shape, "Reshape or shorten y.")
    check.finite("y", labels)
    return points, labels


@guard
def distinct(x: Any, y: Any) -> tuple[Floats, Floats]:
    """The distinct inputs in the order of their first occurrence, each with its label.

    >>> distinct([[1, 2], [3, 4], [1, 2]], [5, 6, 5])[1].tolist()
    [5.0, 6.0]
    """
    points, labels = examples(x, y)
    _, first, group = np.unique(points, axis=0, return_index=True, return_inverse=True)
    original = first[group.reshape(-1)]
    clash = np.flatnonzero(labels != labels[original])
    if len(clash):
        i, j = int(original[clash[0]]), int(clash[0])
        got = f"{labels[i]:g} and {labels[j]:g} for rows {i} and {j} with equal x"
        check.refuse("y", "one label for each distinct x", got, "No network interpolates both: remove one.")
    keep = np.sort(first)
    return points[keep], labels[keep]


@guard
def appended_norm(x: Floats) -> Floats:
    """‖x′‖ = √(‖x‖² + 1), x′ = (x, 1)."""
    norm: Floats = np.sqrt(np.sum(x**2, axis=1) + 1)
    return norm
