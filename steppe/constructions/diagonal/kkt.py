"""KKT points of: least risk on M under S ≤ 2/η (Lemma E.1, corrected), support by support."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats
from steppe.constructions.diagonal.example import example
from steppe.constructions.diagonal.risk import risk

# Sums of squares of a few numbers: what is within this of a bound, relatively, is on it.
_ROUNDING = 1e-12
_MOST_SUPPORTS = 16


@dataclass(frozen=True, eq=False)
class KKT:
    """w ≥ 0 (any signs of its entries give further ones) with its multipliers; `active` where S = 2/η holds it."""

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
    """All of them, of least risk first: on support A, w² = 1 − νx − 2ληx² with (λ, ν) from the constraints.

    Corrects Lemma E.1 in three places: positivity reads 2ληxᵢ² + νxᵢ < 1; Eq. 13 applies where the non-zero entries
    of x on A differ, not those of all x; where they are equal there is no point with λ > 0, for S is then 4 y x₀ on
    all of A. Entries of x may have any sign or be zero; y ≠ 0.

    >>> [p.w.round(3).tolist() for p in kkt_points([1.0, 0.5], 1.5, 0.25)]
    [[1.0, 1.0], [1.225, 0.0], [0.0, 1.732]]
    """
    point, label = example(x, y)
    lr = check.number("lr", lr, above=0.0)
    if label == 0:
        check.refuse("y", "not 0", 0.0, "At y = 0 the constraint has no gradient on M, and KKT says nothing.")
    if len(point) > _MOST_SUPPORTS:
        rule = f"of at most {_MOST_SUPPORTS} entries"
        check.refuse("x", rule, len(point), "Use least_risk, which needs no supports.")
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
        # The second kind lies on the bound by construction; with λ = 0 it is of the first kind.
        feasible = lam > _ROUNDING if k else sharpness <= 2 / lr * (1 + _ROUNDING)
        if (u > 0).all() and feasible:
            w = np.zeros(len(x))
            w[list(A)] = np.sqrt(u)
            found.append(KKT(w, A, float(lam), float(nu), float(risk(w)), sharpness))
    return found
