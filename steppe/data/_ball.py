"""Generators of inputs in a ball, on a circle or on an ellipsoid, and a test for extreme points of a set."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steppe import check
from steppe.data._dataset import Floats, Split

Flags = NDArray[np.bool_]


def ball(d: int, n: int, *, radius: float | None = None, test: int = 0, key: int | np.random.Generator = 0) -> Split:
    """x uniform in the ball of `radius` (√d by default), y = |x₁| − |x₂| (wen2023, appendix B.2).

    Four ReLU neurons without bias compute the label.

    >>> x, y, _, _ = ball(10, 1000, key=0)
    >>> bool((np.linalg.norm(x, axis=1) <= np.sqrt(10)).all()), bool((y == abs(x[:, 0]) - abs(x[:, 1])).all())
    (True, True)
    """
    d = check.integer("d", d, minimum=2, remedy="The label |x₁| − |x₂| needs two coordinates.")
    n, test = check.integer("n", n, minimum=1), check.integer("test", test, minimum=0)
    radius = float(np.sqrt(d)) if radius is None else check.number("radius", radius, above=0.0)
    rng = np.random.default_rng(key)
    x, x_test = _in_ball(rng, d, n, radius), _in_ball(rng, d, test, radius)
    return Split(x, _difference(x), x_test, _difference(x_test))


def _in_ball(rng: np.random.Generator, d: int, n: int, radius: float) -> Floats:
    direction = rng.standard_normal((n, d))
    # ‖x‖/radius has distribution function t^d.
    length = radius * rng.random((n, 1)) ** (1 / d)
    x: Floats = direction * (length / np.linalg.norm(direction, axis=1, keepdims=True))
    return x


def _difference(x: Floats) -> Floats:
    return np.abs(x[:, 0]) - np.abs(x[:, 1])


def first_coordinate(v: Floats) -> Floats:
    """y = v₁, 1-Lipschitz."""
    return v[:, 0]


def circle(
    d: int,
    n: int,
    *,
    label: Callable[[Floats], Floats] = first_coordinate,
    radius: float | None = None,
    test: int = 0,
    key: int | np.random.Generator = 0,
) -> Split:
    """x[:2] = v uniform on the unit circle, y = label(v), the rest uniform on a sphere so that ‖x‖ = radius.

    This is the distribution of wen2023, Proposition A.2, with a Lipschitz `label` from (n, 2) to (n,). By default
    radius is √d, and 1 for d = 2.

    >>> x, y, _, _ = circle(5, 100, radius=3.0, key=0)
    >>> np.linalg.norm(x[:, :2], axis=1).std().round(12), np.linalg.norm(x, axis=1).round(12).max()
    (np.float64(0.0), np.float64(3.0))
    """
    d = check.integer("d", d, minimum=2, remedy="The circle needs two coordinates.")
    n, test = check.integer("n", n, minimum=1), check.integer("test", test, minimum=0)
    if radius is None:
        radius = 1.0 if d == 2 else float(np.sqrt(d))
    radius = check.number("radius", radius, minimum=1.0, remedy="Its first two coordinates have norm 1 already.")
    if d == 2 and radius != 1:
        check.refuse("radius", "1 when d = 2", radius, "Use d ≥ 3: for d = 2, x is v itself.")
    rng = np.random.default_rng(key)
    x, x_test = _over_circle(rng, d, n, radius), _over_circle(rng, d, test, radius)
    return Split(x, label(x[:, :2]), x_test, label(x_test[:, :2]))


def _over_circle(rng: np.random.Generator, d: int, n: int, radius: float) -> Floats:
    angle = rng.uniform(0, 2 * np.pi, n)
    rest = rng.standard_normal((n, d - 2))
    if d > 2:
        rest *= np.sqrt(radius**2 - 1) / np.linalg.norm(rest, axis=1, keepdims=True)
    return np.concatenate([np.cos(angle)[:, None], np.sin(angle)[:, None], rest], axis=1)


def sign_of_first(x: Floats) -> Floats:
    """y = ±1, the sign of x₁ minus its median."""
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
    """Extreme points of different norms: on a random ellipsoid with axes of 1 to `stretch` and a random centre.

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
    """Which rows of x are extreme points (wen2023, Definition 4.1): vertices of the convex hull of all rows.

    Each copy of a repeated vertex counts. A row xᵢ is a vertex if some w has w·xᵢ > w·xⱼ for all other points.
    Directions from the centre prove most vertices. Each other point takes linear programs (HiGHS) against the known
    vertices, and is inside if it is in their hull (Clarkson 1994). A vertex within rounding of the hull of the others
    counts as inside.

    >>> is_extreme([[0, 0], [2, 0], [0, 2], [1, 1], [0.5, 0.5]]).tolist()
    [True, True, True, False, False]
    """
    points = np.asarray(x, dtype=np.float64)
    if points.ndim != 2 or points.size == 0:
        check.refuse("x", "of shape (n, d), one row a point", points.shape, "Reshape it.")
    check.finite("x", points)
    unique, group = np.unique(points, axis=0, return_inverse=True)
    # Centred and scaled by the set itself, so that the tolerances below do not depend on units.
    scaled = (unique - unique.mean(axis=0)) / max(float(np.ptp(unique, axis=0).max()), 1e-300)
    return _vertices(scaled)[group.reshape(-1)]


def _vertices(points: Floats) -> Flags:
    known = _furthest(points, points) | _furthest(points, _whitened(points))
    inside = np.zeros(len(points), dtype=bool)
    for i in range(len(points)):
        while not known[i] and not inside[i]:
            w = _direction(points[i] - points[known])
            reach = points @ w
            rounding = 1e-12 * float(np.abs(w).sum())
            if not known.any() or np.min(reach[i] - reach[known]) > rounding:
                # The furthest point along w. Of several, the last in lexicographic order is a vertex.
                known[np.flatnonzero(reach >= reach.max() - rounding).max()] = True
            else:
                inside[i] = True
    return known


def _direction(away: Floats) -> Floats:
    """The w in [−1, 1]^d that maximises the least w·ĝ over the unit vectors ĝ along the rows of `away`."""
    from scipy.optimize import linprog

    count, d = away.shape
    if count == 0:
        return np.ones(d)
    unit = away / np.linalg.norm(away, axis=1, keepdims=True)
    cost = np.append(np.zeros(d), -1.0)
    rows = np.hstack([-unit, np.ones((count, 1))])
    found = linprog(cost, A_ub=rows, b_ub=np.zeros(count), bounds=[(-1, 1)] * d + [(None, None)], method="highs")
    return np.asarray(found.x[:d], dtype=np.float64)


def _furthest(points: Floats, directions: Floats) -> Flags:
    """Whether each point is the only furthest one along its own direction."""
    reach = directions @ points.T
    own = np.diagonal(reach).copy()
    np.fill_diagonal(reach, -np.inf)
    rounding = 1e-12 * np.abs(directions).sum(axis=1)
    furthest: Flags = own - reach.max(axis=1) > rounding
    return furthest


def _whitened(points: Floats) -> Floats:
    """(XᵀX)⁻¹x for each x: outward normals of the ellipsoid that the covariance defines."""
    return points @ np.linalg.pinv(points.T @ points, hermitian=True)
