"""Logistic loss with label smoothing as a regression problem: where it is minimal and how it curves there."""

import math
from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats


def target(y: Any, smoothing: float) -> Floats:
    """γ_p y with γ_p = ln((1 − p)/p) and y = ±1: the output that minimises the loss (Theorem A.2).

    ℓ(f, y) = (1 − p) log(1 + e^{−yf}) + p log(1 + e^{yf}); Definition A.2 prints it with p and 1 − p exchanged.

    >>> target([1.0, -1.0], 0.2).round(4).tolist()                  # ± ln 4
    [1.3863, -1.3863]
    """
    labels = np.asarray(y, dtype=np.float64)
    if not np.isin(labels, (-1.0, 1.0)).all():
        check.refuse("y", "-1 or +1 for the logistic loss", np.unique(labels)[:5].tolist(), "Map the classes to ±1.")
    p = _probability(smoothing)
    return math.log((1 - p) / p) * labels


def curvature(smoothing: float) -> float:
    """∂²ℓ/∂f² = p(1 − p) at the minimum (Lemma A.13, which prints 1/(p(1 − p))).

    >>> round(curvature(0.2), 12)
    0.16
    """
    p = _probability(smoothing)
    return p * (1 - p)


def _probability(smoothing: float) -> float:
    p = check.number("smoothing", smoothing, above=0.0, remedy="Without smoothing no output is a minimum.")
    if p >= 1:
        check.refuse("smoothing", "below 1", smoothing, "It is the probability that a label is flipped.")
    return p
