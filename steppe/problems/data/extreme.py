"""Sets of extreme points (wen2023, Definition 4.1): points that are all vertices of their convex hull."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steppe import check
from steppe.problems.data.hypercube import Floats, Split

Flags = NDArray[np.bool_]


def sign_of_first(x: Floats) -> Floats:
    """y = ±1, the side of the first coordinate's median."""
    return np.where(x[:, 0] > np.median(x[:, 0]), 1.0, -1.0) if len(x) else np.zeros(0)


def ellipsoid(
    d: int,
    n: int,
    *,
    label: Callable[[Floats], Floats] = sign_of_first,
    stretch: float = 2.0,
    test: int = 0,
    key: int | np.random.Generator = 0,
) -> Split:
    """Extreme points of different norms: the surface of a random ellipsoid, axes between 1 and `stretch`, off 0.

    >>> x, _, _, _ = ellipsoid(3, 40, key=0)
    >>> bool(is_extreme(x).all()), bool(np.ptp(np.linalg.norm(x, axis=1)) > 0.5)
    (True, True)
    """
    d = check.integer("d", d, minimum=2, remedy="On a line only two points are extreme.")
    n, test = check.integer("n", n, minimum=1), check.integer("test", test, minimum=0)
    stretch = check.number("stretch", stretch, minimum=1.0)
    rng = np.random.default_rng(key)
    axes, _ = np.linalg.qr(rng.standard_normal((d, d)))
    shape = rng.uniform(1.0, stretch, d)[:, None] * axes
    centre = rng.standard_normal(d)
    directions = rng.standard_normal((n + test, d))
    x = directions / np.linalg.norm(directions, axis=1, keepdims=True) @ shape + centre
    return Split(x[:n], label(x[:n]), x[n:], label(x[n:]))


def is_extreme(x: Any) -> Flags:
    """Which rows of x are vertices of the convex hull of all rows; a repeated vertex counts each time.

    A row is a vertex when some w has w·xᵢ > w·xⱼ for all other points, and that w is its proof. Directions from the
    middle settle most; the rest take linear programs (HiGHS) against the vertices known so far, a point being inside
    as soon as it is inside their hull (Clarkson 1994). A vertex within rounding of the others' hull counts as inside.

    >>> is_extreme([[0, 0], [2, 0], [0, 2], [1, 1], [0.5, 0.5]]).tolist()
    [True, True, True, False, False]
    """
    points = np.asarray(x, dtype=np.float64)
    if points.ndim != 2 or points.size == 0:
        check.refuse("x", "of shape (n, d), one row a point", points.shape, "Reshape it.")
    check.finite("x", points)
    unique, group = np.unique(points, axis=0, return_inverse=True)
    # A scale and a centre of the set's own: the tests below are then free of units.
    scaled = (unique - unique.mean(axis=0)) / max(float(np.ptp(unique, axis=0).max()), 1e-300)
    return _vertices(scaled)[group.reshape(-1)]


def _vertices(points: Floats) -> Flags:
    known = _proven(points, points) | _proven(points, _whitened(points))
    inside = np.zeros(len(points), dtype=bool)
    for i in range(len(points)):
        while not known[i] and not inside[i]:
            w = _direction(points[i] - points[known])
            reach = points @ w
            rounding = 1e-12 * float(np.abs(w).sum())
            if not known.any() or np.min(reach[i] - reach[known]) > rounding:
                # The furthest point along w; among equals the last in lexicographic order, which is a vertex.
                known[np.flatnonzero(reach >= reach.max() - rounding).max()] = True
            else:
                inside[i] = True
    return known


def _direction(away: Floats) -> Floats:
    """w in the unit cube with the largest smallest w·ĝ over the unit vectors ĝ along `away`."""
    from scipy.optimize import linprog

    count, d = away.shape
    if count == 0:
        return np.ones(d)
    unit = away / np.linalg.norm(away, axis=1, keepdims=True)
    cost = np.append(np.zeros(d), -1.0)
    rows = np.hstack([-unit, np.ones((count, 1))])
    found = linprog(cost, A_ub=rows, b_ub=np.zeros(count), bounds=[(-1, 1)] * d + [(None, None)], method="highs")
    return np.asarray(found.x[:d], dtype=np.float64)


def _proven(points: Floats, directions: Floats) -> Flags:
    """Is each point the only furthest one along its direction?"""
    reach = directions @ points.T
    own = np.diagonal(reach).copy()
    np.fill_diagonal(reach, -np.inf)
    rounding = 1e-12 * np.abs(directions).sum(axis=1)
    proven: Flags = own - reach.max(axis=1) > rounding
    return proven


def _whitened(points: Floats) -> Floats:
    """(XᵀX)⁻¹x: the outward normals of the ellipsoid of the set's covariance."""
    return points @ np.linalg.pinv(points.T @ points, hermitian=True)
