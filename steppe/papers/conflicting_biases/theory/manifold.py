"""M = {w : ⟨x, w^L⟩ = y}, the interpolators of one example of a diagonal network: calculus, least norm, sharpness."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steppe import check
from steppe.training_set import Floats

Objective = Callable[[Floats], tuple[Floats, Floats]]


def example(x: Any, y: Any, *, depth: int = 2) -> tuple[Floats, float]:
    """One training example: x (d,) and y as float64; raises if ⟨x, w^L⟩ = y has no solution.

    >>> example([1, -2], -3)[1]
    -3.0
    """
    point, label = np.asarray(x, dtype=np.float64), check.number("y", y)
    if point.ndim != 1 or point.size == 0:
        check.refuse("x", "of shape (d,), one example", point.shape, "Pass the single training input.")
    check.finite("x", point)
    if not point.any():
        check.refuse("x", "not all zero", point.tolist(), "Every w predicts 0: there is nothing to fit.")
    if depth % 2 == 0 and label != 0 and not (np.sign(label) * point > 0).any():
        remedy = "w² is never negative, so no w fits this y: change its sign or that of an entry of x."
        check.refuse("y", "of the sign of some entry of x", f"y = {label:g} with x = {point.tolist()}", remedy)
    return point, label


@dataclass(frozen=True, eq=False)
class Manifold:
    """The interpolators of L(w) = ½(⟨x, w^L⟩ − y)² (Lemmas 3.1 and C.1); every method takes w of shape (..., d).

    >>> m = Manifold([1.0, 0.5], 1.5)
    >>> float(m.sharpness([1.0, 1.0]))                              # 4 (1² + ½²)
    5.0
    """

    x: Floats
    y: float
    depth: int = 2

    def __init__(self, x: Any, y: Any, depth: int = 2):
        depth = check.integer("depth", depth, minimum=1)
        point, label = example(x, y, depth=depth)
        for name, value in (("x", point), ("y", label), ("depth", depth)):
            object.__setattr__(self, name, value)

    def residual(self, w: Any) -> Floats:
        """h(w) = ⟨x, w^L⟩ − y."""
        return np.asarray(w, dtype=np.float64) ** self.depth @ self.x - self.y

    def normal(self, w: Any) -> Floats:
        """∇h = L x ⊙ w^{L−1}; T_w M is its orthogonal complement."""
        return self.depth * self.x * np.asarray(w, dtype=np.float64) ** (self.depth - 1)

    def projector(self, w: Any) -> Floats:
        """The orthogonal projection onto T_w M, a (d, d) matrix for a single w."""
        n = self.normal(w)
        return np.eye(len(n)) - np.outer(n, n) / (n @ n)

    def gradient(self, w: Any) -> Floats:
        """∇L = h ∇h."""
        return self.residual(w)[..., None] * self.normal(w)

    def bend(self, w: Any) -> Floats:
        """The diagonal of ∇²h: L(L − 1) x ⊙ w^{L−2}."""
        if self.depth == 1:
            return np.zeros_like(np.asarray(w, dtype=np.float64))
        power = np.asarray(w, dtype=np.float64) ** (self.depth - 2)
        return self.depth * (self.depth - 1) * self.x * power

    def hessian(self, w: Any) -> Floats:
        """∇²L = ∇h ∇hᵀ + h ∇²h, at any w."""
        n = self.normal(w)
        residual_part = (self.residual(w)[..., None] * self.bend(w))[..., None] * np.eye(len(self.x))
        return n[..., :, None] * n[..., None, :] + residual_part

    def sharpness(self, w: Any) -> Floats:
        """S(w) = L²‖x ⊙ w^{L−1}‖² for w on M (Eq. 11 for L = 2); λ_max ∇²L only there."""
        return np.sum(self.normal(w) ** 2, axis=-1)

    def operator_norm(self, w: Any) -> Floats:
        """‖∇²L(w)‖ at any w."""
        return np.abs(np.linalg.eigvalsh(self.hessian(w))).max(axis=-1)

    def onto(self, w: Any) -> Floats:
        """The multiple of w on M; raises if ⟨x, w^L⟩ has the wrong sign."""
        w = np.asarray(w, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.asarray(self.y / (self.residual(w) + self.y))
        if (self.depth % 2 == 0 and (ratio < 0).any()) or not np.isfinite(ratio).all():
            check.refuse("w", "of ⟨x, w^L⟩ with the sign of y", w.tolist(), "Its ray does not meet M: move w.")
        scale = np.sign(ratio) * np.abs(ratio) ** (1 / self.depth)
        return scale[..., None] * w

    def riemannian(self, gradient: Floats, hessian: Floats, w: Any) -> tuple[Floats, Floats]:
        """(P∇f, P(∇²f − κ∇²h)P) with κ = ⟨∇f, ∇h⟩/‖∇h‖²: gradient and Hessian on M of a function f of w."""
        P, n = self.projector(w), self.normal(w)
        kappa = gradient @ n / (n @ n)
        return P @ gradient, P @ (hessian - kappa * np.diag(self.bend(w))) @ P


def arc(x: Any, y: Any, count: int = 201) -> Floats:
    """The part of M in the positive quadrant for d = 2, x > 0, L = 2: `count` points from the w₁-axis to the w₂-axis.

    >>> arc([1.0, 4.0], 4.0, 3).round(6).tolist()
    [[2.0, 0.0], [1.414214, 0.707107], [0.0, 1.0]]
    """
    point, label = example(x, y)
    if point.shape != (2,) or (point <= 0).any() or label <= 0:
        check.refuse("x", "two positive numbers, with y > 0", (point.tolist(), label), "Other M are not such an arc.")
    angle = np.linspace(0, np.pi / 2, count)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    circle[-1, 0] = 0.0  # cos(π/2) is rounding
    return np.sqrt(label / point) * circle


def half_norm(w: Floats) -> tuple[Floats, Floats]:
    """Gradient and Hessian of ½‖w‖² = ½‖w²‖₁ (Eq. 10)."""
    return w, np.eye(len(w))


def eighth_sharpness(x: Floats) -> Objective:
    """Gradient and Hessian of ½‖x ⊙ w‖² = S/8 (Eq. 11)."""
    return lambda w: (x**2 * w, np.diag(x**2))


@dataclass(frozen=True)
class Extreme:
    """{w : ‖w‖² = y/x₀, supp w ⊂ `support`}: x equals x₀ there; `value` is the least norm or sharpness."""

    value: float
    x0: float
    support: NDArray[np.intp]
    norm2: float

    def point(self, d: int) -> Floats:
        """The member with all its weight on the first index of the support."""
        w = np.zeros(d)
        w[self.support[0]] = np.sqrt(self.norm2)
        return w


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
    """The interpolator of least sharpness for L ≥ 3 layers: w^L ∝ 1/xᵢ^{L/(L−2)}, no coordinate is zero.

    S = L² Σ xᵢ² |uᵢ|^{2−2/L} in u = w^L is strictly convex for L ≥ 3, where it is linear for L = 2: depth turns the
    sparse flattest solution into a dense one. For even L, coordinates of the wrong sign stay 0.

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
    return np.sign(u) * np.abs(u) ** (1 / L)
