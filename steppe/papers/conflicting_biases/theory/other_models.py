"""Two models beyond the paper's: one weight past its edge of stability, and the form ⟨u ⊙ v, x⟩ on n examples."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from steppe import check
from steppe.training_set import Floats, examples

# Gradient descent of one weight, exactly: with z = w√(x/y) and a = 2ηxy = η/η_c a step is z ← z(1 + a(1 − z²)).

EDGE = 1.0  # z = 1 becomes unstable: its sharpness is 2/η
FOUR = float(np.sqrt(5) - 1)  # the orbit of period 2 becomes unstable
SIGNS = float(np.sqrt(27 / 4) - 1)  # the image of the maximum reaches 0: orbits of both signs merge
ESCAPE = 2.0  # the maximum leaves the interval that maps into itself: almost every start diverges


def step(z: Any, a: Any) -> Floats:
    """z(1 + a(1 − z²)).

    >>> float(step(0.5, 1.0))
    0.875
    """
    z = np.asarray(z, dtype=np.float64)
    return z * (1 + np.asarray(a) * (1 - z**2))


def two_cycle(a: float) -> tuple[float, float]:
    """The orbit of period 2 for a ≥ 1: z² = s/a and 1/(as), s + 1/s = 1 + a; so z₁z₂ = 1/a.

    >>> z1, z2 = two_cycle(1.2)
    >>> bool(abs(step(z1, 1.2) - z2) < 1e-15 and abs(step(z2, 1.2) - z1) < 1e-15)
    True
    """
    a = check.number("a", a, minimum=EDGE, remedy="Below a = 1 gradient descent settles at z = 1.")
    s = (1 + a + np.sqrt((1 + a) ** 2 - 4)) / 2
    return float(np.sqrt(s / a)), float(np.sqrt(1 / (a * s)))


def orbits(a: Any, *, start: float = 0.1, burn: int = 2000, keep: int = 200) -> Floats:
    """The last `keep` of burn + keep iterates for each a, (len a, keep); NaN for orbits that have diverged."""
    a = np.asarray(a, dtype=np.float64)
    z, kept = np.full(a.shape, start), []
    for k in range(burn + keep):
        # Beyond the bound every further step is larger: NaN instead of an overflow.
        z = np.where(np.abs(z) <= np.sqrt(1 + 2 / a), step(np.nan_to_num(z), a), np.nan)
        if k >= burn:
            kept.append(z)
    return np.stack(kept, axis=1)


def lyapunov(a: Any, *, start: float = 0.1, burn: int = 2000, keep: int = 5000) -> Floats:
    """The mean of ln|1 + a − 3az²| along an orbit: negative for a stable orbit, positive for chaos."""
    a = np.asarray(a, dtype=np.float64)
    z = orbits(a, start=start, burn=burn, keep=keep)
    slopes = np.abs(1 + a[:, None] - 3 * a[:, None] * z**2)
    return np.mean(np.log(np.maximum(slopes, 1e-300)), axis=1)


# The form f(x) = ⟨u ⊙ v, x⟩ on n examples.


@dataclass(frozen=True, eq=False)
class Flattest:
    """β of least trace, its trace, and a proven lower bound of the trace (the value of a dual point)."""

    beta: Floats
    trace: float
    lower: float


def weights(x: Any) -> Floats:
    """qⱼ = (1/n) Σᵢ xᵢⱼ²."""
    return np.mean(np.asarray(x, dtype=np.float64) ** 2, axis=0)


def trace(x: Any, u: Any, v: Any) -> Floats:
    """Σⱼ qⱼ(uⱼ² + vⱼ²), for u and v of shape (..., d): tr ∇²L at any u, v, since ∇²f has no diagonal."""
    return (np.asarray(u, dtype=np.float64) ** 2 + np.asarray(v, dtype=np.float64) ** 2) @ weights(x)


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
    # A dual point bounds the trace of every interpolator from below. It is scaled down until it is surely feasible.
    multiplier = np.asarray(primal.eqlin.marginals)
    excess = np.max(np.abs(x.T @ multiplier) / np.where(q > 0, 2 * q, np.inf), initial=1.0)
    return Flattest(primal.x[:d] - primal.x[d:], float(primal.fun), float(multiplier @ y / excess))


def conserved(u: Any, v: Any) -> Floats:
    """u² − v²: constant along the gradient flow of any loss of u ⊙ v."""
    return np.asarray(u, dtype=np.float64) ** 2 - np.asarray(v, dtype=np.float64) ** 2
