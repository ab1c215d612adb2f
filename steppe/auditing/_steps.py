"""Rounded weights."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def spacing(array: Floats, bits: int) -> float:
    """The distance of the numbers that `bits` bits can hold, from −max|a| to max|a| in 2^bits − 1 places."""
    return float(np.max(np.abs(array), initial=0.0)) / (2 ** (bits - 1) - 1)


def rounded(w: Floats, arrays: Mapping[str, slice], bits: int) -> tuple[Floats, dict[str, float]]:
    """w with each array rounded to the nearest of 2^bits − 1 equally spaced numbers around 0, and the spacings.

    >>> w, steps = rounded(np.array([-1.0, 0.2, 0.9]), {"W": slice(0, 3)}, 2)
    >>> w.tolist(), steps
    ([-1.0, 0.0, 1.0], {'W': 1.0})
    """
    result, steps = np.array(w, dtype=float), {}
    for name, place in arrays.items():
        step = steps[name] = spacing(result[place], bits)
        if step > 0:
            result[place] = step * np.round(result[place] / step)
    return result, steps
