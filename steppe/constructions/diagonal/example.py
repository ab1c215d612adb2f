"""One training example (x, y) of a diagonal network with shared weights, as the theory takes it."""

from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats


def example(x: Any, y: Any, *, depth: int = 2) -> tuple[Floats, float]:
    """x (d,) and y as float64, refused where ⟨x, w^L⟩ = y has no solution.

    >>> example([1, -2], -3)[1]
    -3.0
    """
    point, label = np.asarray(x, dtype=np.float64), check.number("y", y)
    if point.ndim != 1 or point.size == 0:
        check.refuse("x", "of shape (d,), one example", point.shape, "Pass the single training input.")
    check.finite("x", point)
    if not point.any():
        check.refuse("x", "not all zero", point.tolist(), "Every w then predicts 0: there is nothing to fit.")
    if depth % 2 == 0 and label != 0 and not (np.sign(label) * point > 0).any():
        remedy = "w² is never negative, so no w fits this y: change its sign or that of an entry of x."
        check.refuse("y", "of the sign of some entry of x", f"y = {label:g} with x = {point.tolist()}", remedy)
    return point, label
