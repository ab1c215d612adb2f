"""Unit vectors that part each point of a set from all the others: they exist for extreme points (Definition 4.1)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats, inputs


@dataclass(frozen=True)
class Separation:
    """wᵢ·xᵢ = offsetᵢ and wᵢ·x ≤ offsetᵢ − gapᵢ, gapᵢ > 0, at every other point x; ‖wᵢ‖ = 1."""

    vectors: Floats
    offsets: Floats
    gaps: Floats


def separate(x: Any) -> Separation:
    """The closed form for corners of the hypercube, and for points on a sphere; else a quadratic program a point."""
    points = inputs(x)
    if np.all(np.abs(points) == 1):
        return hypercube(points)
    norms = np.linalg.norm(points, axis=1)
    if norms[0] > 0 and np.ptp(norms) <= 16 * np.finfo(float).eps * norms[0]:
        return sphere(points)
    return widest(points)


def hypercube(x: Any) -> Separation:
    """wᵢ = xᵢ/√d parts xᵢ ∈ {−1, 1}^d from all other corners, in x or not, by 2/√d (Proposition 4.1).

    >>> hypercube([[1, 1, 1, 1]]).gaps.tolist()
    [1.0]
    """
    points = inputs(x)
    if not np.all(np.abs(points) == 1):
        bad = float(points[np.abs(points) != 1][0])
        check.refuse("x", "made of −1 and 1", bad, "Use separating.separate for other points.")
    root = np.sqrt(points.shape[1])
    return Separation(points / root, np.full(len(points), root), np.full(len(points), 2 / root))


def sphere(x: Any) -> Separation:
    """wᵢ = xᵢ/‖xᵢ‖ for points of one norm R: wᵢ·(xᵢ − xⱼ) = ‖xᵢ − xⱼ‖²/2R."""
    points = inputs(x)
    norms = np.linalg.norm(points, axis=1)
    return _verified(points, points / norms[:, None])


def widest(x: Any) -> Separation:
    """wᵢ with the largest smallest cosine to xᵢ − xⱼ, j ≠ i: the point of their normalised hull nearest to 0.

    >>> widest([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]).vectors[0].round(6).tolist()
    [-0.707107, -0.707107]
    """
    points = inputs(x)
    return _verified(points, np.stack([_nearest(points, i) for i in range(len(points))]))


def _nearest(points: Floats, i: int) -> Floats:
    """min ‖w‖ with ĝⱼ·w ≥ 1, ĝⱼ the unit vectors along xᵢ − xⱼ, as non-negative least squares (Lawson, Hanson 1974).

    Unit lengths do not change which w part, but keep close neighbours (a gap of h²/2 on a circle) well conditioned.
    """
    from scipy.optimize import nnls

    away = points[i] - np.delete(points, i, axis=0)
    if len(away) == 0:
        return np.eye(1, points.shape[1]).reshape(-1)
    lengths = np.linalg.norm(away, axis=1)
    if lengths.min() == 0:
        check.refuse("x", "without repeated rows", f"row {i} twice", "Keep one of them.")
    away = away / lengths[:, None]
    system = np.vstack([away.T, np.ones(len(away))])
    weights, _ = nnls(system, np.eye(len(system))[-1], maxiter=50 * len(away))
    vector: Floats = weights @ away
    length = float(np.linalg.norm(vector))
    # A sum of unit vectors that is 0 but for rounding: 0 is in their hull, and no w parts the point.
    if length < 1e-12 or np.min(away @ vector) <= 0:
        others = np.delete(np.arange(len(points)), i)[weights > 0].tolist()
        got = f"point {i}, {points[i].tolist()}, in the convex hull of points {others}"
        remedy = "Remove it: steppe.problems.data.is_extreme tells which points are vertices."
        check.refuse("x", "a set of extreme points (Definition 4.1)", got, remedy)
    unit: Floats = vector / length
    return unit


def _verified(points: Floats, vectors: Floats) -> Separation:
    """The gaps measured, so that whatever is returned does part the points, rounding included."""
    products = vectors @ points.T
    offsets = np.diagonal(products).copy()
    rounding = 8 * np.finfo(float).eps * np.abs(points).sum(axis=1).max()
    differences = offsets[:, None] - products
    np.fill_diagonal(differences, np.inf)
    gaps = np.min(differences, axis=1)
    if not np.all(gaps > rounding):
        i = int(np.argmin(gaps))
        j = int(np.argmin(differences[i]))
        got = f"point {i} only {gaps[i]:.1e} beyond point {j} in every direction"
        check.refuse("x", "a set of extreme points, apart by more than rounding", got, "Remove one of the two.")
    # A point alone is parted from nothing: any gap will do.
    return Separation(vectors, offsets, np.where(np.isfinite(gaps), gaps, 1.0))
