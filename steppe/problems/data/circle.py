"""The distribution of Proposition A.2: x[:2] uniform on the unit circle, ‖x‖ = R, a Lipschitz label of x[:2]."""

from collections.abc import Callable

import numpy as np

from steppe import check
from steppe.problems.data.hypercube import Floats, Split


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

    `label` maps (n, 2) to (n,); radius is 1 for d = 2 and √d by default above.

    >>> x, y, _, _ = circle(5, 100, radius=3.0, key=0)
    >>> np.linalg.norm(x[:, :2], axis=1).std().round(12), np.linalg.norm(x, axis=1).round(12).max()
    (np.float64(0.0), np.float64(3.0))
    """
    d = check.integer("d", d, minimum=2, remedy="The circle needs two coordinates.")
    n, test = check.integer("n", n, minimum=1), check.integer("test", test, minimum=0)
    if radius is None:
        radius = 1.0 if d == 2 else float(np.sqrt(d))
    radius = check.number("radius", radius, minimum=1.0, remedy="x[:2] alone has norm 1.")
    if d == 2 and radius != 1:
        check.refuse("radius", "1 when d = 2", radius, "Raise d to make room for the rest of ‖x‖.")
    rng = np.random.default_rng(key)
    x, x_test = _points(rng, d, n, radius), _points(rng, d, test, radius)
    return Split(x, label(x[:, :2]), x_test, label(x_test[:, :2]))


def _points(rng: np.random.Generator, d: int, n: int, radius: float) -> Floats:
    angle = rng.uniform(0, 2 * np.pi, n)
    rest = rng.standard_normal((n, d - 2))
    if d > 2:
        rest *= np.sqrt(radius**2 - 1) / np.linalg.norm(rest, axis=1, keepdims=True)
    return np.concatenate([np.cos(angle)[:, None], np.sin(angle)[:, None], rest], axis=1)
