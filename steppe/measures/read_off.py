"""A number that is computed, not estimated, at parameters that a diverged run may have left."""

import math
from dataclasses import replace

from steppe.estimate import Estimate


def read_off(value: float) -> Estimate:
    """Exact; but NaN is no number that was found, and has not converged.

    >>> read_off(2.0).is_exact, read_off(math.nan).is_exact, read_off(math.nan).converged
    (True, False, False)
    """
    return replace(Estimate.exact(value), converged=not math.isnan(value))
