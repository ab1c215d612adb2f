"""The uniform ball of wen2023, appendix B.2: x uniform in a ball of radius √d, y = |x₁| − |x₂|."""

import numpy as np

from steppe import check
from steppe.problems.data.hypercube import Floats, Split


def ball(d: int, n: int, *, radius: float | None = None, test: int = 0, key: int | np.random.Generator = 0) -> Split:
    """x uniform in the ball of `radius` (√d by default), y = |x₁| − |x₂|: a 2-MLP-No-Bias with four neurons.

    >>> x, y, _, _ = ball(10, 1000, key=0)
    >>> bool((np.linalg.norm(x, axis=1) <= np.sqrt(10)).all()), bool((y == abs(x[:, 0]) - abs(x[:, 1])).all())
    (True, True)
    """
    d = check.integer("d", d, minimum=2, remedy="The label |x₁| − |x₂| needs two coordinates.")
    n, test = check.integer("n", n, minimum=1), check.integer("test", test, minimum=0)
    radius = float(np.sqrt(d)) if radius is None else check.number("radius", radius, above=0.0)
    rng = np.random.default_rng(key)
    x, x_test = _uniform(rng, d, n, radius), _uniform(rng, d, test, radius)
    return Split(x, _label(x), x_test, _label(x_test))


def _uniform(rng: np.random.Generator, d: int, n: int, radius: float) -> Floats:
    direction = rng.standard_normal((n, d))
    # ‖x‖/radius has distribution function t^d.
    length = radius * rng.random((n, 1)) ** (1 / d)
    x: Floats = direction * (length / np.linalg.norm(direction, axis=1, keepdims=True))
    return x


def _label(x: Floats) -> Floats:
    return np.abs(x[:, 0]) - np.abs(x[:, 1])
