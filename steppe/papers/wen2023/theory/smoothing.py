"""Label smoothing, and how complete a training set on the cube is."""

import math
from typing import Any

import numpy as np

from steppe import check
from steppe.examples import Floats, inputs

# Logistic loss with label smoothing as a regression problem: where it is minimal and how it curves there.


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


# Condition 1 of wen2023: every corner of the first two coordinates together with every tail.


def tails(x: Any) -> Floats:
    """S such that the rows of x are {−1, 1}² × S, each of them once; an error when there is no such S.

    >>> tails([[1, 1, 5], [1, -1, 5], [-1, 1, 5], [-1, -1, 5]]).tolist()
    [[5.0]]
    """
    points = inputs(x, minimum_d=2)
    corners = [points[(points[:, 0] == a) & (points[:, 1] == b), 2:] for a in (1, -1) for b in (1, -1)]
    sets = [np.unique(corner, axis=0) for corner in corners]
    same = all(np.array_equal(s, sets[0]) and len(s) == len(c) for s, c in zip(sets, corners, strict=True))
    if not same or sum(map(len, corners)) != len(points):
        sizes = [len(corner) for corner in corners]
        rule = "complete: the same distinct tails x[2:] at all four corners (±1, ±1) of the first two coordinates"
        remedy = "Build it with steppe.data._cube."
        check.refuse("x", rule, f"{sizes} of {len(points)} rows at the four corners", remedy)
    return sets[0]
