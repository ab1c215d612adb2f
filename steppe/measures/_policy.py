"""What all measures do alike: arguments checked, what was read off, expectations."""

import math
from dataclasses import dataclass, fields, replace
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from steppe import check
from steppe._random import Key, generator
from steppe.curvature import Curvature, Statistics, hessian
from steppe.curvature._inputs import a_problem
from steppe.estimate import Accuracy, Estimate
from steppe.problem import Problem

# What measures of curvature take besides (problem, w), refused before anything is computed, whatever path is taken.


def check_policy(
    problem: Problem,
    *,
    rtol: float = 0.1,
    confidence: float = 0.99,
    max_matvecs: int = 1,
    curvature: Curvature = hessian,
    statistics: Statistics,
    memory: float,
    key: Key,
) -> None:
    """A measure leaves out what it does not take."""
    a_problem(problem)
    Accuracy(rtol, confidence, max_matvecs)
    check_matrix(curvature, statistics, memory)
    generator(key)


def check_matrix(curvature: Curvature, statistics: Statistics, memory: float) -> None:
    if not isinstance(curvature, Curvature):
        remedy = "Pass hessian, gauss_newton or another one of steppe.curvature."
        check.refuse("curvature", "a curvature matrix", curvature, remedy)
    if not isinstance(statistics, Statistics):
        remedy = "Pass FullBatch(), Frozen() or PerChunk(size) of steppe.measures."
        check.refuse("statistics", "a treatment of batch statistics", statistics, remedy)
    check.number("memory", memory, above=0.0, remedy="Pass a number of bytes, for instance 2**30.")


# An estimate that says how batch statistics were treated.


@final
@dataclass(frozen=True)
class Measured(Estimate):
    """An `Estimate` of a curvature; `statistics` is "full batch", "frozen" or "chunks of k"."""

    statistics: str = "full batch"


def measured(estimate: Estimate, statistics: Statistics) -> Measured:
    return Measured(**{f.name: getattr(estimate, f.name) for f in fields(Estimate)}, statistics=str(statistics))


# A number that is computed, not estimated, at parameters that a diverged run may have left.


def read_off(value: float) -> Estimate:
    """Exact; but NaN is no number that was found, and has not converged.

    >>> read_off(2.0).is_exact, read_off(math.nan).is_exact, read_off(math.nan).converged
    (True, False, False)
    """
    return replace(Estimate.exact(value), converged=not math.isnan(value))


# The mean of a skewed sample, with an interval that holds it.


def interval(sample: NDArray[np.float64], delta: float) -> tuple[float, float, float]:
    """(mean, lower, upper): Student's interval, corrected for skewness.

    The loss increase under a Gaussian step is to leading order a weighted sum of χ² variables, as skewed as one χ²₁
    where one direction dominates. There Student's interval at 0.99 holds in 0.979 of cases for 64 draws; this one,
    Hall's cubic transformation of the t statistic, in 0.990.

    >>> [round(v, 3) for v in interval(np.array([-1.0, 1.0] * 50), 0.01)]
    [0.0, -0.264, 0.264]

    Hall 1992, On the removal of skewness by transformation.
    """
    n, mean, deviation = len(sample), float(sample.mean()), float(sample.std(ddof=1))
    if deviation == 0.0:
        return mean, mean, mean
    skewness = float((((sample - mean) / deviation) ** 3).mean())
    a, error, t = skewness / (6.0 * n**0.5), deviation / n**0.5, -float(stdtrit(n - 1, 0.5 * delta))
    return mean, mean - _inverse(t, a) * error, mean - _inverse(-t, a) * error


def _inverse(u: float, a: float) -> float:
    """The t whose transform t + 2at² + (4/3)a²t³ + a is u."""
    return u if abs(a) < 1e-8 else (float(np.cbrt(1.0 + 6.0 * a * (u - a))) - 1.0) / (2.0 * a)
