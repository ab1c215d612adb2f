"""Three idealised algorithms that see one example: least norm, least sharpness, least risk (section 3, Prop. E.2).

All work on u = w² and on many examples at once: x (..., d), y (...,), with x ≥ 0, y ≥ 0, entries of x distinct.
"""

from itertools import combinations
from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats
from steppe.constructions.diagonal.risk import Moments

_MOST_SUPPORTS = 8


def min_norm(x: Any, y: Any) -> Floats:
    """u = (y/x_max) e_{k_max}: the limit of gradient descent from a small start with a vanishing rate.

    >>> min_norm([1.0, 0.5], 2.0).tolist()
    [2.0, 0.0]
    """
    x, y = _examples(x, y)
    return _single(x, y, np.argmax(x, axis=-1))


def min_sharpness(x: Any, y: Any) -> Floats:
    """u = (y/x_min) e_{k_min}: where gradient descent would go with an extremely large rate, if it converged.

    >>> min_sharpness([1.0, 0.5], 2.0).tolist()
    [0.0, 4.0]
    """
    x, y = _examples(x, y)
    return _single(x, y, np.argmin(x, axis=-1))


def min_risk(x: Any, y: Any, moments: Moments) -> Floats:
    """The u ≥ 0 of least risk with ⟨x, u⟩ = y: `unconstrained` (Prop. E.2 iii) where that is ≥ 0, else on an edge.

    A convex quadratic program, solved on every support.

    >>> from steppe.constructions.diagonal.risk import gaussian
    >>> min_risk([1.0, 0.5], 0.2, gaussian(2)).tolist()             # unconstrained it would be (−0.04, 0.48)
    [0.0, 0.4]
    """
    x, y = _examples(x, y)
    d = x.shape[-1]
    if d > _MOST_SUPPORTS:
        check.refuse("x", f"of at most {_MOST_SUPPORTS} entries", d, "Supports are gone through one by one.")
    best = np.full(x.shape, np.nan)
    least = np.full(y.shape, np.inf)
    for size in range(1, d + 1):
        for A in map(list, combinations(range(d), size)):
            u = np.zeros(x.shape)
            part = Moments(moments.Sigma[np.ix_(A, A)], moments.mu[A], moments.sigma2)
            u[..., A] = unconstrained(x[..., A], y, part)
            risk = np.where((u >= 0).all(axis=-1), moments.risk(u), np.inf)
            best = np.where((risk < least)[..., None], u, best)
            least = np.minimum(risk, least)
    return best


def unconstrained(x: Any, y: Any, moments: Moments) -> Floats:
    """Σ^{−½}(P⊥ μ_Σ + y x_Σ/‖x_Σ‖²) = Σ⁻¹(μ − κx), the minimum over all u ∈ ℝᵈ: Prop. E.2 (iii) as printed.

    It forgets u = w² ≥ 0, so that its root need not exist; see `min_risk`.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    inverse = np.linalg.inv(moments.Sigma)
    whitened = x @ inverse
    kappa = (whitened @ moments.mu - y) / np.sum(whitened * x, axis=-1)
    u: Floats = inverse @ moments.mu - kappa[..., None] * whitened
    return u


def unconstrained_risk(x: Any, y: Any, moments: Moments) -> Floats:
    """½(σ² + y²/‖x_Σ‖² − 2y⟨μ_Σ, x_Σ⟩/‖x_Σ‖² − μ_Σᵀ P⊥ μ_Σ), the risk that Prop. E.2 (iii) states."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    inverse = np.linalg.inv(moments.Sigma)
    length, along = np.sum((x @ inverse) * x, axis=-1), x @ inverse @ moments.mu
    across = moments.mu @ inverse @ moments.mu - along**2 / length
    risk: Floats = 0.5 * (moments.sigma2 + y**2 / length - 2 * y * along / length - across)
    return risk


def single_entry_risk(x: Any, y: Any, k: Any, moments: Moments) -> Floats:
    """½(σ² + Σ_kk y²/x_k² − 2 μ_k y/x_k), the risk of u = (y/x_k) e_k: Prop. E.2 (i), (ii), corrected."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    weight = y / np.take_along_axis(x, np.asarray(k)[..., None], axis=-1)[..., 0]
    risk: Floats = 0.5 * (moments.sigma2 + np.diag(moments.Sigma)[k] * weight**2 - 2 * moments.mu[k] * weight)
    return risk


def _examples(x: Any, y: Any) -> tuple[Floats, Floats]:
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x.shape[:-1] != y.shape:
        check.refuse("y", f"of shape {x.shape[:-1]}, one an example", y.shape, "Give x one row for each y.")
    if (x < 0).any() or (y < 0).any() or not (x > 0).any(axis=-1).all():
        check.refuse("x and y", "non-negative, no x all zero", "other signs", "Proposition E.2 assumes them so.")
    return x, y


def _single(x: Floats, y: Floats, k: Any) -> Floats:
    if np.take_along_axis(x, k[..., None], axis=-1).min() == 0:
        check.refuse("x", "without zeros for the least sharpness", 0.0, "A zero entry cannot carry y: drop it.")
    u = np.zeros(x.shape)
    np.put_along_axis(u, k[..., None], (y / np.take_along_axis(x, k[..., None], axis=-1)[..., 0])[..., None], axis=-1)
    return u
