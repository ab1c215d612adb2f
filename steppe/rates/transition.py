"""The rate at which sharpness leaves its plateau, with a confidence interval."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steppe import check

# Places tried for the corner between two neighbouring rates.
_PLACES = 50
_FEWEST = 5

# The fine grid goes up to 6/s_GF, so many η_c; farther out sharpness need not follow 2/η.
_FARTHEST = 3.0


@dataclass(frozen=True)
class Transition:
    """The corner `rate` with lower ≤ truth ≤ upper at the stated confidence; the `level` before it, and the slope of
    log values in log rate after it: −1 where they follow 2/η.

    `found` is False where no corner fits better than a constant, at the same confidence: then the interval is
    everything.
    """

    rate: float
    lower: float
    upper: float
    confidence: float
    level: float
    slope: float
    found: bool


def transition(rates: ArrayLike, values: ArrayLike, *, confidence: float = 0.95) -> Transition:
    """log v = a for η ≤ η*, a + b log(η/η*) beyond, by least squares; the interval is that of the profile likelihood.

    All η* are kept whose residual sum of squares is at most (1 + F/(n − 3)) times the least, F being the quantile of
    the F(1, n − 3) distribution: exact for normal noise where the model is linear in what is left. A constant has two
    parameters fewer, and is given up where the F(2, n − 3) test does.

    >>> eta = np.arange(1, 13) / 4
    >>> fit = transition(eta, np.where(eta < 1.1, 8.0, 8.8 / eta))
    >>> round(fit.rate, 2), round(fit.slope, 2), fit.found
    (1.1, -1.0, True)
    """
    from scipy.stats import f as fisher

    if not 0 < check.number("confidence", confidence) < 1:
        check.refuse("confidence", "between 0 and 1", confidence, "Pass for example 0.95.")
    rates, values = np.asarray(rates, dtype=float), np.asarray(values, dtype=float)
    positive = all(((v > 0) & (v < np.inf)).all() for v in (rates, values))
    if rates.ndim != 1 or rates.shape != values.shape or len(np.unique(rates)) < _FEWEST or not positive:
        remedy = "Take those of runs that reached their loss, at five rates or more."
        rule = "lists of equal length of positive numbers, at five different rates or more"
        check.refuse("rates and values", rule, f"shapes {rates.shape} and {values.shape}", remedy)
    order = np.argsort(rates)
    x, y = np.log(rates[order]), np.log(values[order])
    corners = np.unique(np.concatenate([np.linspace(a, b, _PLACES) for a, b in pairwise(np.unique(x)[:-1])]))
    rss, levels, slopes = _hinges(x, y, corners)
    best = int(np.argmin(rss))
    least, level, slope = (float(column[best]) for column in (rss, levels, slopes))
    free = len(x) - 3
    # Below rounding of the logarithms every fit is perfect.
    floor = len(x) * (np.finfo(float).eps * max(1.0, float(np.abs(y).max()))) ** 2
    kept = corners[rss <= least * (1 + fisher.ppf(confidence, 1, free) / free) + floor]
    constant = float(np.sum((y - y.mean()) ** 2))
    found = (constant - least) / 2 > fisher.ppf(confidence, 2, free) * (least + floor) / free
    lower, upper = (float(np.exp(v)) for v in (kept.min(), kept.max())) if found else (0.0, float("inf"))
    rate = float(np.exp(corners[best]))
    return Transition(rate, lower, upper, confidence, float(np.exp(level)), slope, bool(found))


def corner(ends: Mapping[str, NDArray[Any]], critical: float, name: str = "sharpness") -> Transition | None:
    """Where the column `name` of a sweep's ends at one goal leaves its plateau, up to 3 η_c; None where fewer than five
    such rates reached the goal, or a value has no logarithm.

    >>> eta = np.array([0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 9.0])
    >>> ends = {"lr": eta, "outcome": np.zeros(7), "sharpness": np.minimum(2.0, 2.0 / eta)}
    >>> round(corner(ends, 1.0).rate, 2), corner(ends, 0.4)
    (1.0, None)
    """
    kept = (ends["outcome"] == 0) & (ends["lr"] <= 1.0001 * _FARTHEST * critical)
    rates, values = ends["lr"][kept], ends[name][kept]
    if len(np.unique(rates)) < _FEWEST or not ((values > 0) & (values < np.inf)).all():
        return None
    return transition(rates, values)


def _hinges(x: NDArray[Any], y: NDArray[Any], corners: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Residual sum of squares, level and slope of the best line with each of these corners: one simple regression on
    the ramp max(0, x − corner) for each."""
    ramps = np.maximum(0.0, x[None] - corners[:, None])
    away, height = ramps - ramps.mean(axis=1, keepdims=True), y - y.mean()
    slopes = (away @ height) / np.sum(away**2, axis=1)
    levels = y.mean() - slopes * ramps.mean(axis=1)
    rss = np.sum((height[None] - slopes[:, None] * away) ** 2, axis=1)
    return rss, levels, slopes
