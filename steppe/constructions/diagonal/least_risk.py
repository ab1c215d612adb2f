"""The global minimum of the risk on M under S ≤ 2/η, in any dimension.

In u = w² it is a convex quadratic program: min ½‖u‖² − ⟨1, u⟩ over u ≥ 0 with ⟨x, u⟩ = y, ⟨x², u⟩ ≤ 1/(2η). Its
solution is u = (1 − νx − 2ληx²)₊ with the two multipliers found one inside the other, each by a monotone equation.
"""

from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats
from steppe.constructions.diagonal.example import example
from steppe.constructions.diagonal.extremes import least_sharpness


def least_risk(x: Any, y: Any, lr: float | None = None) -> Floats:
    """w ≥ 0 of least risk on M with S(w) ≤ 2/η; without lr, M_G: the best generalising point of M.

    >>> least_risk([1.0, 0.5], 1.5).tolist()
    [1.0, 1.0]
    >>> round(float(4 * least_risk([1.0, 0.5], 1.5, 0.5) ** 2 @ [1.0, 0.25]), 12)     # the bound 2/0.5 holds it
    4.0
    """
    point, label = example(x, y)
    if label == 0:
        return np.where(point == 0, 1.0, 0.0)
    if lr is None:
        return np.sqrt(_given(0.0, point, label))
    limit = 1 / (2 * check.number("lr", lr, above=0.0))
    flattest = least_sharpness(point, label)
    if limit < flattest.value / 4:
        rule = f"at most {2 / flattest.value:.6g}, where 2/η is the least sharpness on M"
        check.refuse("lr", rule, lr, "No interpolator is flatter.")
    if limit == flattest.value / 4:
        return flattest.point(len(point))

    def excess(a: float) -> float:
        return float(point**2 @ _given(a, point, label)) - limit

    return np.sqrt(_given(_root(excess), point, label))


def _given(a: float, x: Floats, y: float) -> Floats:
    """u = (1 − ax² − νx)₊ with ν such that ⟨x, u⟩ = y."""
    c = 1 - a * x**2
    used = x != 0
    # ⟨x, u⟩ falls with ν and bends where an entry appears or vanishes; between two bends it is linear.
    bends = np.sort(c[used] / x[used])
    values = np.array([x @ np.maximum(c - nu * x, 0) for nu in bends])
    k = int(np.sum(values >= y))
    left = bends[k - 1] if k else bends[0] - 1
    right = bends[k] if k < len(bends) else bends[-1] + 1
    active = (c - (left + right) / 2 * x > 0) & used
    nu = (x[active] @ c[active] - y) / np.sum(x[active] ** 2)
    u: Floats = np.where(active | ~used, np.maximum(c - nu * x, 0), 0)
    return u


def _root(excess: Any) -> float:
    """The a ≥ 0 from which on the sharpness is within its bound."""
    from scipy.optimize import brentq

    if excess(0.0) <= 0:
        return 0.0
    high = 1.0
    while excess(high) > 0:
        high *= 2
    return float(brentq(excess, 0.0, high, xtol=1e-15, rtol=8.9e-16))
