"""Lengths and projections that survive rounding."""

import numpy as np

from steppe.linalg.arguments import Matrix, Vector


def length(x: np.ndarray) -> float:
    """‖x‖ without underflow or overflow of the squares.

    >>> length(np.array([3e-200, 4e-200]))
    5e-200
    """
    plain = float(np.linalg.norm(x))
    if 1e-140 < plain < 1e140:
        return plain
    largest = float(np.abs(x).max(initial=0.0))
    return largest * float(np.linalg.norm(x / largest)) if largest > 0.0 else 0.0


def project(x: Vector, rows: Matrix) -> Vector:
    """x minus its components along orthonormal rows; twice, since once leaves the rounding of what it removed.

    >>> project(np.array([3.0, 4.0]), np.array([[1.0, 0.0]])).tolist()
    [0.0, 4.0]
    """
    for _ in range(2):
        x = x - (rows @ x) @ rows
    return x


def outside(x: Vector, rows: Matrix) -> Vector:
    """The direction of x orthogonal to the rows, of unit norm; zero where nothing but rounding is left.

    >>> outside(np.array([3.0, 4.0]), np.array([[1.0, 0.0]])).tolist()
    [0.0, 1.0]
    """
    left = project(x, rows)
    size = float(np.linalg.norm(left))
    result: Vector = left / size if size > 1e-8 * float(np.linalg.norm(x)) else np.zeros_like(x)
    return result
