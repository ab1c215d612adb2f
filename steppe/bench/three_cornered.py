"""The errors of three methods where the truth is not known: the three-cornered hat (Gray and Allan 1974)."""

import numpy as np
from numpy.typing import ArrayLike


def own_errors(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> tuple[float, float, float]:
    """The distance of each from the truth, if their errors are orthogonal: then ‖a − b‖² = e_a² + e_b², and so on.

    In many dimensions errors of different origin are nearly so. An error that comes out imaginary, which is one far
    below the other two, is given as 0.

    >>> own_errors([3.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 5.0])
    (3.0, 4.0, 5.0)
    """
    a, b, c = (np.asarray(v, dtype=float) for v in (a, b, c))
    ab, ac, bc = (float(np.sum((u - v) ** 2)) for u, v in ((a, b), (a, c), (b, c)))
    return _root(ab + ac - bc), _root(ab + bc - ac), _root(ac + bc - ab)


def _root(twice: float) -> float:
    return max(twice / 2, 0.0) ** 0.5
