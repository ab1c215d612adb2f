"""Least risk on M under the bound S ≤ 2/η on the sharpness: all KKT points, and the global minimum (Lemma E.1)."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from steppe import check
from steppe.papers.conflicting_biases.theory.manifold import example, least_sharpness
from steppe.papers.conflicting_biases.theory.risks import risk
from steppe.training_set import Floats

# A sum of squares of a few numbers is on a bound if it is within this of it, relatively.
_ROUNDING = 1e-12
_MOST_SUPPORTS = 16


@dataclass(frozen=True, eq=False)
class KKT:
    """w ≥ 0 (other signs of its entries give further points) with its multipliers; `active`: the bound S = 2/η is."""

    w: Floats
    support: tuple[int, ...]
    lam: float
    nu: float
    risk: float
    sharpness: float

    @property
    def active(self) -> bool:
        return self.lam > 0


def kkt_points(x: Any, y: Any, lr: float) -> list[KKT]:
    """All KKT points in the order of their risks: on support A, w² = 1 − νx − 2ληx², (λ, ν) from the constraints.

    Corrects Lemma E.1 in three places: positivity reads 2ληxᵢ² + νxᵢ < 1; Eq. 13 applies where the non-zero entries
    of x on A differ, not those of all x; where they are equal, S is 4 y x₀ on
    all of A and no point has λ > 0. Entries of x may have any sign or be zero; y ≠ 0.

    >>> [p.w.round(3).tolist() for p in kkt_points([1.0, 0.5], 1.5, 0.25)]
    [[1.0, 1.0], [1.225, 0.0], [0.0, 1.732]]
    """
    point, label = example(x, y)
    lr = check.number("lr", lr, above=0.0)
    if label == 0:
        check.refuse("y", "not 0", 0.0, "At y = 0 the constraint has no gradient on M: there are no KKT conditions.")
    if len(point) > _MOST_SUPPORTS:
        rule = f"of at most {_MOST_SUPPORTS} entries"
        check.refuse("x", rule, len(point), "Use least_risk, which does not list supports.")
    d = len(point)
    supports = [A for size in range(1, d + 1) for A in combinations(range(d), size) if point[list(A)].any()]
    found = [p for A in supports for p in _on_support(point, label, lr, A)]
    return sorted(found, key=lambda p: p.risk)


def multipliers(x: Floats, y: float, lr: float) -> tuple[float, float]:
    """(λ, ν) of Eq. 13 from the entries x of the support: ⟨x, u⟩ = y and ⟨x², u⟩ = 1/(2η) at u = 1 − 2ληx² − νx."""
    A1, A2, A3, A4 = (float(np.sum(x**k)) for k in (1, 2, 3, 4))
    determinant = A2 * A4 - A3**2
    a = (y * A3 + A2**2 - A1 * A3 - A2 / (2 * lr)) / determinant
    return a / (2 * lr), -(y * A4 + A3 * A2 - A1 * A4 - A3 / (2 * lr)) / determinant


def _on_support(x: Floats, y: float, lr: float, A: tuple[int, ...]) -> list[KKT]:
    on = x[list(A)]
    candidates = [(0.0, (on.sum() - y) / np.sum(on**2))]
    entries = on[on != 0]
    if np.ptp(entries) > _ROUNDING * np.abs(entries).max():
        candidates.append(multipliers(on, y, lr))
    found = []
    for k, (lam, nu) in enumerate(candidates):
        u = 1 - 2 * lam * lr * on**2 - nu * on
        sharpness = 4 * float(on**2 @ u)
        # The second candidate lies on the bound by construction; with λ = 0 it is the first one.
        feasible = lam > _ROUNDING if k else sharpness <= 2 / lr * (1 + _ROUNDING)
        if (u > 0).all() and feasible:
            w = np.zeros(len(x))
            w[list(A)] = np.sqrt(u)
            found.append(KKT(w, A, float(lam), float(nu), float(risk(w)), sharpness))
    return found


def least_risk(x: Any, y: Any, lr: float | None = None) -> Floats:
    """w ≥ 0 of least risk on M with S(w) ≤ 2/η, in any dimension; without lr, M_G: the point of M with least risk.

    >>> least_risk([1.0, 0.5], 1.5).tolist()
    [1.0, 1.0]
    >>> round(float(4 * least_risk([1.0, 0.5], 1.5, 0.5) ** 2 @ [1.0, 0.25]), 12)     # the bound 2/0.5 is active
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
    # ⟨x, u⟩ decreases with ν; it is linear between two kinks, where an entry appears or vanishes.
    kinks = np.sort(c[used] / x[used])
    values = np.array([x @ np.maximum(c - nu * x, 0) for nu in kinks])
    k = int(np.sum(values >= y))
    left = kinks[k - 1] if k else kinks[0] - 1
    right = kinks[k] if k < len(kinks) else kinks[-1] + 1
    active = (c - (left + right) / 2 * x > 0) & used
    nu = (x[active] @ c[active] - y) / np.sum(x[active] ** 2)
    return np.where(active | ~used, np.maximum(c - nu * x, 0), 0)


def _root(excess: Any) -> float:
    """The smallest a ≥ 0 at which the sharpness is within its bound."""
    from scipy.optimize import brentq

    if excess(0.0) <= 0:
        return 0.0
    high = 1.0
    while excess(high) > 0:
        high *= 2
    return float(brentq(excess, 0.0, high, xtol=1e-15, rtol=8.9e-16))
