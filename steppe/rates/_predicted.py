"""s_GF before the run has reached its goal, from the losses and the sharpness so far."""

import numpy as np
from numpy.typing import ArrayLike

from steppe import check
from steppe.estimate import Estimate

# The slope of log sharpness in log loss is fitted where the loss is at most WINDOW times the last one.
WINDOW, FEWEST = 3.0, 4

# The interval: from no growth to that of SPREAD times the fitted slope, or of the slope LEAST if that is larger.
SPREAD, LEAST = 2.5, 0.1


def predicted(losses: ArrayLike, sharpness: ArrayLike, goal: float) -> Estimate:
    """s_GF at the loss `goal`, from an early part of the flow, or of gradient descent below η_c; 2/s_GF is η_c.

    Sharpness grows about as a power of the loss as the network learns: λ ∝ L^(−b), with b ≥ 0 fitted to the last part
    of the records. s_GF is the largest so far or the value at the goal. `lower` is the largest so far, below which s_GF
    cannot be; the interval has no proof, and [rates.md](rates.md) says how often it held the truth.

    >>> loss = np.geomspace(1.0, 0.1, 20)
    >>> round(predicted(loss, 5 * loss**-0.5, 0.01).value, 3)                             # 5 · 10
    50.0
    """
    L, s = (np.asarray(v, dtype=float) for v in (losses, sharpness))
    if L.ndim != 1 or L.shape != s.shape:
        check.refuse("sharpness", "one for each loss", s.shape, "Pass two columns of the records of one run.")
    known = np.isfinite(L) & np.isfinite(s) & (L > 0)
    L, s = L[known], s[known]
    check.number("goal", goal, above=0.0)
    near = (WINDOW * L[-1] >= L) & (s > 0) if len(L) else known[:0]
    if near.sum() < FEWEST or np.ptp(np.log(L[near])) == 0:
        rule = f"at least {FEWEST} positive ones at losses up to {WINDOW:g} times the last one"
        check.refuse("sharpness", rule, int(near.sum()), "Record more often, or go on with the run.")
    largest, left = float(s.max()), max(0.0, float(np.log(L[-1] / goal)))
    slope = max(0.0, -float(np.polyfit(np.log(L[near]), np.log(s[near]), 1)[0]))
    ends = [float(s[-1] * np.exp(b * left)) for b in (slope, max(SPREAD * slope, LEAST))]
    return Estimate(max(largest, ends[0]), largest, max(largest, ends[1]), 0.9, converged=False)
