"""Two points, logistic loss (appendix F): x₁ = (0, 1) of class 0, x₂ = (x̃₂, 1) of class 1, ‖x̃₂‖ = 1, w = (w̃, b).

The Hessian depends on w through b and z = ⟨w̃, x̃₂⟩ alone: ½(g′(b) x₁x₁ᵀ + g′(z + b) x₂x₂ᵀ), g the logistic function.
"""

from typing import Any

import numpy as np

from steppe.constructions._examples import Floats


def slope(t: Any) -> Floats:
    """g′(t) = g(t)(1 − g(t)) = 1/(4 cosh²(t/2)).

    >>> float(slope(0.0))
    0.25
    """
    slopes: Floats = 0.25 / np.cosh(np.asarray(t, dtype=np.float64) / 2) ** 2
    return slopes


def loss(w: Any, x2: Any) -> float:
    """−½(log(1 − g(b)) + log g(z + b)), the logistic loss with the sign that appendix F leaves out."""
    w, x2 = np.asarray(w, dtype=np.float64), np.asarray(x2, dtype=np.float64)
    b = w[-1]
    return float(0.5 * (np.logaddexp(0, b) + np.logaddexp(0, -(w[:-1] @ x2 + b))))


def sharpness(z: Any, b: Any) -> Floats:
    """¼(g′(b) + 2g′(z + b) + √(g′(b)² + 4g′(z + b)²)), the larger root of `quadratic`.

    >>> round(float(sharpness(1.0, 0.0)), 4)
    0.2773
    """
    p, q = slope(b), slope(np.asarray(z) + b)
    largest: Floats = (p + 2 * q + np.sqrt(p**2 + 4 * q**2)) / 4
    return largest


def quadratic(z: float, b: float) -> tuple[float, float, float]:
    """Coefficients of λ² − (½g′(b) + g′(z + b))λ + ¼g′(b)g′(z + b): its roots are the non-zero eigenvalues."""
    p, q = float(slope(b)), float(slope(z + b))
    return 1.0, -(p / 2 + q), p * q / 4


def max_margin(x2: Any) -> Floats:
    """(x̃₂, −½) (Theorem F.1 i); every positive multiple is the same classifier."""
    return np.append(np.asarray(x2, dtype=np.float64), -0.5)


def min_sharpness(x2: Any) -> Floats:
    """(x̃₂, 0) (Theorem F.1 ii): of least sharpness among the classifiers with ‖w̃‖ = 1 that are right on both points."""
    return np.append(np.asarray(x2, dtype=np.float64), 0.0)


LEAST = float(sharpness(1.0, 0.0))
