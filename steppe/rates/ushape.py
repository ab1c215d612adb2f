"""Whether the test loss is U-shaped in the learning rate: ✓, (✓), (×) or ×, by a stated rule."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steppe import check

Mark = Literal["✓", "(✓)", "(×)", "×"]

# How high the lower of the two sides must rise from the bottom, relative to the higher one.
CLEAR, VISIBLE = 0.2, 0.05

# A rise is no rise below so many standard errors of the curve's jitter.
SIGMAS = 3.0


@dataclass(frozen=True)
class UShape:
    """`left` and `right`: how far the curve rises from its bottom to its ends; `jitter`: the noise of one point."""

    mark: Mark
    best: int
    left: float
    right: float
    jitter: float


def u_shape(values: ArrayLike) -> UShape:
    """The verdict on values in the order of their rates; `best` is the index of the least.

    The curve is smoothed by the median of three neighbours, its ends being the medians of the outermost three. Its
    sides are the rises from its bottom to its ends; q is the lower side over the higher one, and a side counts only
    where it is more than three times the jitter, the robust spread of the values around the mean of their neighbours.

        ✓    both sides count, q ≥ 0.2: the best rate lies between
        (✓)  both sides count, q ≥ 0.05
        ×    one side counts and q < 0.05: the best rate is at an end
        (×)  everything else: a side that is seen but lost in the jitter, or a flat curve

    >>> u_shape([5, 4, 3, 2, 1, 2, 3, 4, 5]).mark, u_shape([5, 4, 3, 2, 1, 0.9, 0.8]).mark
    ('✓', '×')
    """
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        remedy = "Take those of runs that reached their loss."
        check.refuse("values", "a list of at least one finite number", values, remedy)
    smooth = np.array([np.median(values[max(0, min(k - 1, len(values) - 3)) :][:3]) for k in range(len(values))])
    best = int(np.argmin(smooth))
    left, right = float(smooth[0] - smooth[best]), float(smooth[-1] - smooth[best])
    jitter = _jitter(values)
    low, high = sorted((left, right))
    share = low / high if high > 0 else 0.0
    counts = [side > SIGMAS * jitter and side > 0 for side in (low, high)]
    mark: Mark = "(×)"
    if all(counts) and share >= CLEAR:
        mark = "✓"
    elif all(counts) and share >= VISIBLE:
        mark = "(✓)"
    elif counts[1] and share < VISIBLE:
        mark = "×"
    return UShape(mark, best, left, right, jitter)


def _jitter(values: NDArray[Any]) -> float:
    """The standard deviation of one value, from its distance to the mean of its neighbours, robustly.

    That distance has the variance 3/2 of one value's; 1.4826 turns a median of absolute values into a deviation. What a
    smooth curve bends counts as noise, so that the rule errs towards the brackets.
    """
    if len(values) < 5:
        return float("inf")
    away = values[1:-1] - (values[:-2] + values[2:]) / 2
    return float(1.4826 * np.median(np.abs(away)) / np.sqrt(1.5))
