"""M_ℓ1 and M_S: the interpolators of least norm and of least sharpness (Proposition 3.2, Lemmas D.1 and D.2).

In u = w² both are linear programs over {u ≥ 0 : ⟨x, u⟩ = y}, so entries of x of the other sign than y carry no weight.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steppe import check
from steppe.constructions._examples import Floats
from steppe.constructions.diagonal.example import example


@dataclass(frozen=True)
class Extreme:
    """{w : ‖w‖² = y/x₀, supp w ⊂ `support`}: the entries of x there equal x₀; `value` is what is least on it."""

    value: float
    x0: float
    support: NDArray[np.intp]
    norm2: float

    def point(self, d: int) -> Floats:
        """The member with all its weight on the first index of the support."""
        w = np.zeros(d)
        w[self.support[0]] = np.sqrt(self.norm2)
        return w

    def holds(self, w: Any, *, rtol: float = 1e-9) -> bool:
        """Is w a member, to rounding?"""
        u = np.asarray(w, dtype=np.float64) ** 2
        inside = u[self.support].sum()
        return bool(abs(inside - self.norm2) <= rtol * self.norm2 and u.sum() - inside <= rtol * self.norm2)


def least_norm(x: Any, y: Any) -> Extreme:
    """M_ℓ1: x₀ the entry of y's sign that is largest in modulus, min ‖w²‖₁ = y/x₀.

    The paper's Eq. 6 for x > 0. For x of mixed signs its x_max = max |xᵢ| is wrong: see `printed.norm_entry`.

    >>> least_norm([2.0, 1.0, -4.0], 6.0).value
    3.0
    """
    return _extreme(x, y, largest=True)


def least_sharpness(x: Any, y: Any) -> Extreme:
    """M_S: x₀ the entry of y's sign that is smallest in modulus, min S = 4 y x₀ (Eq. 7; Lemma D.2, corrected).

    >>> least_sharpness([2.0, 1.0, -0.5], 6.0).value
    24.0
    """
    return _extreme(x, y, largest=False)


def _extreme(x: Any, y: Any, *, largest: bool) -> Extreme:
    point, label = example(x, y)
    if label == 0:
        check.refuse("y", "not 0", 0.0, "At y = 0 the point w = 0 has least norm and least sharpness.")
    carries = np.sign(label) * point
    x0 = float(carries.max() if largest else carries[carries > 0].min())
    support = np.flatnonzero(carries == x0)
    norm2 = abs(label) / x0
    return Extreme(norm2 if largest else 4 * abs(label) * x0, float(np.sign(label) * x0), support, norm2)


def flattest(x: Any, y: Any, depth: int) -> Floats:
    """The interpolator of least sharpness for L ≥ 3 layers: w^L ∝ 1/xᵢ^{L/(L−2)}, every coordinate in use.

    S = L² Σ xᵢ² |uᵢ|^{2−2/L} in u = w^L is strictly convex for L ≥ 3, where it is linear for L = 2: depth turns the
    sparse flattest solution into a dense one. Coordinates that an even power cannot use stay 0.

    >>> w = flattest([1.0, 0.5], 1.0, 3)
    >>> (w**3 * [9.0, 9.0]).round(12).tolist()                      # ∝ 1/x³, and ⟨x, w³⟩ = 1/5 + 4/5
    [1.8, 14.4]
    """
    L = check.integer("depth", depth, minimum=3, remedy="For L = 2 see least_sharpness: the minimum is sparse.")
    point, label = example(x, y, depth=L)
    usable = (point != 0) & ((np.sign(label) * point > 0) | (L % 2 == 1))
    size = np.zeros(len(point))
    size[usable] = np.abs(point[usable]) ** (-L / (L - 2))
    u = np.sign(point) * size * label / (np.abs(point) @ size)
    w: Floats = np.sign(u) * np.abs(u) ** (1 / L)
    return w
