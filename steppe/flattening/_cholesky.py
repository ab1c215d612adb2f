"""A Cholesky factorisation of a matrix that rounding may have made singular."""

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor

from steppe.training_set import Floats


def damped(matrix: Floats, damping: float) -> Any:
    """The factor of matrix + damping · I, for `cho_solve`; the damping grows until the factor exists.

    >>> damped(np.array([[4.0]]), 0.0)[0].tolist()
    [[2.0]]
    """
    while True:
        try:
            return cho_factor(matrix + damping * np.eye(len(matrix)))
        except LinAlgError:
            damping = 100 * damping or 1e-15
