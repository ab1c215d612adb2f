"""M = {w : ⟨x, w^L⟩ = y}, the interpolators of one example: its tangent spaces, sharpness on it, calculus on it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats
from steppe.constructions.diagonal.example import example


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
        residual: Floats = np.asarray(w, dtype=np.float64) ** self.depth @ self.x - self.y
        return residual

    def normal(self, w: Any) -> Floats:
        """∇h = L x ⊙ w^{L−1}; T_w M is all that is orthogonal to it."""
        normal: Floats = self.depth * self.x * np.asarray(w, dtype=np.float64) ** (self.depth - 1)
        return normal

    def projector(self, w: Any) -> Floats:
        """The orthogonal projection onto T_w M, a (d, d) matrix for a single w."""
        n = self.normal(w)
        return np.eye(len(n)) - np.outer(n, n) / (n @ n)

    def gradient(self, w: Any) -> Floats:
        """∇L = h ∇h."""
        gradient: Floats = self.residual(w)[..., None] * self.normal(w)
        return gradient

    def bend(self, w: Any) -> Floats:
        """The diagonal of ∇²h: L(L − 1) x ⊙ w^{L−2}."""
        if self.depth == 1:
            return np.zeros_like(np.asarray(w, dtype=np.float64))
        power = np.asarray(w, dtype=np.float64) ** (self.depth - 2)
        bend: Floats = self.depth * (self.depth - 1) * self.x * power
        return bend

    def hessian(self, w: Any) -> Floats:
        """∇²L = ∇h ∇hᵀ + h ∇²h, at any w."""
        n = self.normal(w)
        residual_part = (self.residual(w)[..., None] * self.bend(w))[..., None] * np.eye(len(self.x))
        hessian: Floats = n[..., :, None] * n[..., None, :] + residual_part
        return hessian

    def sharpness(self, w: Any) -> Floats:
        """S(w) = L²‖x ⊙ w^{L−1}‖² for w on M (Eq. 11 for L = 2); λ_max ∇²L only there."""
        sharpness: Floats = np.sum(self.normal(w) ** 2, axis=-1)
        return sharpness

    def operator_norm(self, w: Any) -> Floats:
        """‖∇²L(w)‖ at any w."""
        norm: Floats = np.abs(np.linalg.eigvalsh(self.hessian(w))).max(axis=-1)
        return norm

    def onto(self, w: Any) -> Floats:
        """The multiple of w on M; refused where ⟨x, w^L⟩ has the wrong sign for that."""
        w = np.asarray(w, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.asarray(self.y / (self.residual(w) + self.y))
        if (self.depth % 2 == 0 and (ratio < 0).any()) or not np.isfinite(ratio).all():
            check.refuse("w", "of ⟨x, w^L⟩ with the sign of y", w.tolist(), "Its ray does not meet M: move w.")
        scale = np.sign(ratio) * np.abs(ratio) ** (1 / self.depth)
        scaled: Floats = scale[..., None] * w
        return scaled

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
    points: Floats = np.sqrt(label / point) * circle
    return points


Objective = Callable[[Floats], tuple[Floats, Floats]]


def half_norm(w: Floats) -> tuple[Floats, Floats]:
    """Gradient and Hessian of ½‖w‖² = ½‖w²‖₁ (Eq. 10)."""
    return w, np.eye(len(w))


def eighth_sharpness(x: Floats) -> Objective:
    """Gradient and Hessian of ½‖x ⊙ w‖² = S/8 (Eq. 11)."""
    return lambda w: (x**2 * w, np.diag(x**2))
