"""The form f(x) = ⟨u ⊙ v, x⟩ on n examples: its trace, its flattest interpolators, what its flow conserves.

L = (1/n) Σ ½(⟨u ⊙ v, xᵢ⟩ − yᵢ)². At an interpolator tr ∇²L = Σⱼ qⱼ(uⱼ² + vⱼ²), qⱼ = (1/n) Σᵢ xᵢⱼ², and over the ways
to write β = u ⊙ v that is least, 2 Σ qⱼ|βⱼ|, where |u| = |v|: the flattest interpolator is a weighted ℓ1 minimiser.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats, examples


@dataclass(frozen=True, eq=False)
class Flattest:
    """β of least trace, that trace, and a proven lower bound of it (the value of a dual point)."""

    beta: Floats
    trace: float
    lower: float


def weights(x: Any) -> Floats:
    """qⱼ = (1/n) Σᵢ xᵢⱼ²."""
    q: Floats = np.mean(np.asarray(x, dtype=np.float64) ** 2, axis=0)
    return q


def trace(x: Any, u: Any, v: Any) -> Floats:
    """Σⱼ qⱼ(uⱼ² + vⱼ²), for u and v of shape (..., d): tr ∇²L at any u, v, since ∇²f has no diagonal."""
    total: Floats = (np.asarray(u, dtype=np.float64) ** 2 + np.asarray(v, dtype=np.float64) ** 2) @ weights(x)
    return total


def flattest(x: Any, y: Any) -> Flattest:
    """min 2 Σ qⱼ|βⱼ| subject to ⟨β, xᵢ⟩ = yᵢ, a linear program; its dual max ⟨λ, y⟩, |Xᵀλ| ≤ 2q, proves the bound.

    >>> flattest([[1.0, 2.0]], [2.0]).beta.tolist()                 # costs 2·1·2 = 4 or 2·4·1 = 8
    [2.0, 0.0]
    """
    from scipy.optimize import linprog

    x, y = examples(x, y)
    q = weights(x)
    primal = linprog(np.concatenate([2 * q, 2 * q]), A_eq=np.concatenate([x, -x], axis=1), b_eq=y, method="highs")
    if not primal.success:
        check.refuse("y", "⟨β, xᵢ⟩ for some β", y.tolist(), "No weights fit all examples: drop some, or add inputs.")
    d = x.shape[1]
    # Shrunk until it is feasible beyond rounding, a dual point bounds the trace of every interpolator from below.
    multiplier = np.asarray(primal.eqlin.marginals)
    excess = np.max(np.abs(x.T @ multiplier) / np.where(q > 0, 2 * q, np.inf), initial=1.0)
    return Flattest(primal.x[:d] - primal.x[d:], float(primal.fun), float(multiplier @ y / excess))


def conserved(u: Any, v: Any) -> Floats:
    """u² − v², which gradient flow of any loss of u ⊙ v leaves as it is."""
    difference: Floats = np.asarray(u, dtype=np.float64) ** 2 - np.asarray(v, dtype=np.float64) ** 2
    return difference
