"""Points whose first two coordinates lie on the unit circle, in the order of their angle."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats, distinct, examples


@dataclass(frozen=True)
class Arcs:
    """Sorted angles (n,), their labels, the arcs (n,) from each to the next one around, ‖x′‖ and d."""

    angles: Floats
    labels: Floats
    arcs: Floats
    norm: float
    d: int


def arcs(x: Any, y: Any) -> Arcs:
    """The training set of Proposition A.2: x[:2] on the unit circle, one norm ‖x‖ = R, the label a function of x[:2].

    >>> arcs([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0]).arcs.round(6).tolist()       # π/2 and 3π/2
    [1.570796, 4.712389]
    """
    points, labels = examples(x, y)
    if points.shape[1] < 2:
        check.refuse("x", "of two coordinates or more", points.shape, "The first two lie on the unit circle.")
    norms = np.linalg.norm(points, axis=1)
    off = np.abs(np.linalg.norm(points[:, :2], axis=1) - 1)
    if off.max() > 1e-12:
        i = int(np.argmax(off))
        check.refuse("x", "on the unit circle in its first two coordinates", points[i, :2].tolist(), f"Fix row {i}.")
    if np.ptp(norms) > 1e-12 * norms[0]:
        check.refuse("x", "of one norm", f"{norms.min():g} to {norms.max():g}", "Proposition A.2 needs ‖x‖ = R.")
    v, labels = distinct(points[:, :2], labels)
    angles = np.arctan2(v[:, 1], v[:, 0])
    order = np.argsort(angles)
    angles = angles[order]
    between = np.diff(angles, append=angles[0] + 2 * np.pi)
    return Arcs(angles, labels[order], between, float(np.sqrt(norms[0] ** 2 + 1)), points.shape[1])


def unit(angles: Floats) -> Floats:
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)
