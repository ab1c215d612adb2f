"""Gradient descent of one weight, exactly: with z = w√(x/y) and a = 2ηxy = η/η_c a step is z ← z(1 + a(1 − z²)).

z = 1 is the minimum, of sharpness 4xy, which is 2/η at a = 1. What follows is the road to chaos of this cubic map.
"""

from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats

EDGE = 1.0  # z = 1 loses its stability: sharpness = 2/η
FOUR = float(np.sqrt(5) - 1)  # the orbit of period 2 loses its own
SIGNS = float(np.sqrt(27 / 4) - 1)  # the image of the maximum reaches 0: orbits of both signs merge
ESCAPE = 2.0  # the maximum leaves the interval that maps into itself: almost every start diverges


def step(z: Any, a: Any) -> Floats:
    """z(1 + a(1 − z²)).

    >>> float(step(0.5, 1.0))
    0.875
    """
    z = np.asarray(z, dtype=np.float64)
    stepped: Floats = z * (1 + np.asarray(a) * (1 - z**2))
    return stepped


def two_cycle(a: float) -> tuple[float, float]:
    """The orbit of period 2 for a ≥ 1: z² = s/a and 1/(as), s + 1/s = 1 + a; so z₁z₂ = 1/a.

    >>> z1, z2 = two_cycle(1.2)
    >>> bool(abs(step(z1, 1.2) - z2) < 1e-15 and abs(step(z2, 1.2) - z1) < 1e-15)
    True
    """
    a = check.number("a", a, minimum=EDGE, remedy="Below a = 1 gradient descent settles at z = 1.")
    s = (1 + a + np.sqrt((1 + a) ** 2 - 4)) / 2
    return float(np.sqrt(s / a)), float(np.sqrt(1 / (a * s)))


def two_cycle_multiplier(a: Any) -> Floats:
    """The derivative of two steps along that orbit, 9 − 2(1 + a)²: within ±1 exactly for 1 < a < √5 − 1."""
    multiplier: Floats = 9 - 2 * (1 + np.asarray(a, dtype=np.float64)) ** 2
    return multiplier


def bound(a: float) -> float:
    """√(1 + 2/a): the starts |z| up to it stay within it for ever if a ≤ 2; beyond it every start diverges."""
    return float(np.sqrt(1 + 2 / check.number("a", a, above=0.0)))


def orbits(a: Any, *, start: float = 0.1, burn: int = 2000, keep: int = 200) -> Floats:
    """The last `keep` of burn + keep iterates for each a, (len a, keep); NaN where they have left for infinity."""
    a = np.asarray(a, dtype=np.float64)
    z, kept = np.full(a.shape, start), []
    for k in range(burn + keep):
        # Beyond the bound every further step is larger; squares of what has left need not overflow.
        z = np.where(np.abs(z) <= np.sqrt(1 + 2 / a), step(np.nan_to_num(z), a), np.nan)
        if k >= burn:
            kept.append(z)
    return np.stack(kept, axis=1)


def lyapunov(a: Any, *, start: float = 0.1, burn: int = 2000, keep: int = 5000) -> Floats:
    """The mean of ln|1 + a − 3az²| along an orbit: below 0 for a stable orbit, above 0 for chaos."""
    a = np.asarray(a, dtype=np.float64)
    z = orbits(a, start=start, burn=burn, keep=keep)
    slopes = np.abs(1 + a[:, None] - 3 * a[:, None] * z**2)
    exponents: Floats = np.mean(np.log(np.maximum(slopes, 1e-300)), axis=1)
    return exponents
