"""Orthonormal rows that extend an orthonormal basis along given directions."""

import numpy as np

from steppe.linalg.arguments import Matrix, Vector
from steppe.linalg.orthogonal import length
from steppe.linalg.probes import gaussian

# A pass that leaves this part of a vector leaves it orthogonal (Daniel, Gragg, Kaufman and Stewart 1976).
ENOUGH = 0.7


def _reduce(W: Matrix, rows: Matrix, against: Matrix) -> None:
    """One pass of Gram-Schmidt, in place."""
    if len(against):
        W -= (W @ against.T) @ against
    W -= (W @ rows.T) @ rows


def _fresh(rows: Matrix, against: Matrix, key: np.random.Generator) -> Vector:
    """A random unit vector orthogonal to all rows; drawn again where it happens to lie in their span."""
    while True:
        row = gaussian(rows.shape[1], key)
        drawn = np.linalg.norm(row)
        for _ in range(3):
            _reduce(row[None], rows, against)
        left = np.linalg.norm(row)
        if left > 1e-6 * drawn:  # else the three passes leave mostly rounding
            return row / left


def extend(
    rows: Matrix, size: int, width: int, W: Matrix, *, floor: float, against: Matrix, key: np.random.Generator
) -> tuple[Matrix, int]:
    """Fills rows[size : size + width] with Q, orthonormal and orthogonal to `against` and rows[:size], such that
    W = C Q after its components along those are removed; C, and how many rows of Q came from W.

    A direction shorter than `floor` counts as vanished, and a random one takes its place in Q, with zeros in C.

    >>> rows, none = np.eye(3), np.empty((0, 3))
    >>> C, found = extend(
    ...     rows, 1, 2, np.array([[5.0, 2.0, 0.0]]), floor=1e-9, against=none, key=np.random.default_rng(0)
    ... )
    >>> C.tolist(), found, np.abs(rows).tolist()
    ([[2.0, 0.0]], 1, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    """
    _reduce(W, rows[:size], against)
    C, found = np.zeros((len(W), width)), 0
    for i in range(len(W)):
        row, end = W[i : i + 1], size + found
        for j in range(found):
            C[i, j] = float(row[0] @ rows[size + j])
            row -= C[i, j] * rows[size + j]
        beta = length(row)
        if found == width or beta <= floor:
            continue
        # Cancellation may have left components along the basis as large as the residual itself.
        row /= beta
        _reduce(row, rows[:end], against)
        left = float(np.linalg.norm(row))
        if left > 1e-3:  # else it was rounding, all along the basis
            if left < ENOUGH:
                _reduce(row, rows[:end], against)
                left = float(np.linalg.norm(row))
            rows[end] = row[0] / left
            C[i, found] = beta
            found += 1
    for j in range(found, width):
        rows[size + j] = _fresh(rows[: size + j], against, key)
    return C, found
