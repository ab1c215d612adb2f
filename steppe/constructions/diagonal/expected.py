"""Expected generalisation errors by Monte Carlo, with their standard error (Proposition E.2, any distribution)."""

from collections.abc import Callable
from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats
from steppe.constructions.diagonal.risk import Moments
from steppe.estimate import Estimate

Sampler = Callable[[np.random.Generator, int], tuple[Floats, Floats]]
Algorithm = Callable[[Floats, Floats], Floats]


def expected_risk(
    algorithm: Algorithm, sampler: Sampler, moments: Moments, *, samples: int = 100_000, key: int = 0
) -> Estimate:
    """E R(A(x₀, y₀)) over draws of the one training example, ± 2.576 standard errors (99%).

    Only where the variance is finite does the interval mean anything: see `folded.truncated_min` for where it is not.
    """
    x, y = sampler(np.random.default_rng(key), check.integer("samples", samples, minimum=2))
    return mean(moments.risk(algorithm(x, y)))


def mean(values: Any) -> Estimate:
    """The mean of independent draws with its 99% interval.

    >>> mean([1.0, 1.0, 1.0]).value
    1.0
    """
    values = np.asarray(values, dtype=np.float64)
    centre, error = float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
    return Estimate(centre, centre - 2.576 * error, centre + 2.576 * error, 0.99)


def standard_error(estimate: Estimate) -> float:
    return (estimate.upper - estimate.lower) / (2 * 2.576)
