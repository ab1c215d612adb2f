"""Condition 1 of wen2023: every corner of the first two coordinates together with every tail."""

from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats, inputs


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
        remedy = "Build it with steppe.problems.data.complete."
        check.refuse("x", rule, f"{sizes} of {len(points)} rows at the four corners", remedy)
    return sets[0]
