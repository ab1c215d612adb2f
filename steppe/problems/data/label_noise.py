"""Wrong labels on purpose: flipped signs, or Gaussian noise added once."""

from typing import Any

import numpy as np

from steppe import check
from steppe.problems.data.hypercube import Floats


def flipped(y: Any, probability: float, *, key: int | np.random.Generator = 0) -> Floats:
    """−yᵢ with the given probability, each i on its own; yᵢ otherwise.

    >>> flipped([1.0, -1.0, 2.0], 1.0).tolist()
    [-1.0, 1.0, -2.0]
    """
    p = check.number("probability", probability, minimum=0.0)
    if p > 1:
        check.refuse("probability", "at most 1", probability, "Pass the share of labels to flip.")
    labels = np.asarray(y, dtype=np.float64)
    flips = np.random.default_rng(key).random(labels.shape) < p
    return np.where(flips, -labels, labels)


def perturbed(y: Any, sigma: float, *, key: int | np.random.Generator = 0) -> Floats:
    """yᵢ + N(0, σ²), drawn once (label-noise SGD draws anew each step).

    >>> perturbed([1.0, 2.0], 0.0).tolist()
    [1.0, 2.0]
    """
    sigma = check.number("sigma", sigma, minimum=0.0)
    labels = np.asarray(y, dtype=np.float64)
    noisy: Floats = labels + sigma * np.random.default_rng(key).standard_normal(labels.shape)
    return noisy
