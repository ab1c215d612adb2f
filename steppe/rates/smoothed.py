"""The sharpness around its maximum, with the jitter of the edge of stability averaged out."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# The window, relative to the length of the run.
WINDOW = 0.05


def smoothed_maximum(steps: NDArray[Any], values: NDArray[Any], *, window: float = WINDOW) -> float:
    """The largest mean over a stretch of `window` of the run, of the line through the points recorded.

    >>> smoothed_maximum(np.arange(5), np.array([1.0, 1.0, 3.0, 1.0, 1.0]), window=0.5)   # over [1, 3]
    2.0
    """
    steps, values = np.asarray(steps, dtype=float), np.asarray(values, dtype=float)
    known = np.isfinite(values)
    steps, values = steps[known], values[known]
    if len(steps) < 2:
        return float(values.max(initial=np.nan))
    width = window * (steps[-1] - steps[0])
    area = np.append(0.0, np.cumsum(np.diff(steps) * (values[1:] + values[:-1]) / 2))

    def mean(start: NDArray[Any]) -> NDArray[Any]:
        return (_integral(steps, values, area, start + width) - _integral(steps, values, area, start)) / width

    # The best stretch is looked for at those that start, end or lie centred at a recorded point.
    starts = np.concatenate([steps, steps - width, steps - width / 2])
    return float(mean(np.clip(starts, steps[0], steps[-1] - width)).max())


def _integral(x: NDArray[Any], y: NDArray[Any], area: NDArray[Any], to: NDArray[Any]) -> NDArray[Any]:
    """∫ of the line through (x, y) from x[0] to `to`."""
    k = np.clip(np.searchsorted(x, to, side="right") - 1, 0, len(x) - 2)
    h = to - x[k]
    slope = (y[k + 1] - y[k]) / (x[k + 1] - x[k])
    return area[k] + h * y[k] + h * h * slope / 2
