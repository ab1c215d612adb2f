"""Formulas of the paper that are wrong as printed: each fails a test that its corrected version passes."""

from typing import Any

import numpy as np

from steppe.papers.conflicting_biases.theory.kkt import multipliers
from steppe.papers.conflicting_biases.theory.risks import Moments
from steppe.papers.conflicting_biases.theory.two_points import isotropic, loss, slope
from steppe.training_set import Floats


def norm_entry(x: Any) -> float:
    """x₀ = max |xᵢ| on the support of the least norm (Prop. 3.2 i, Lemma D.1 i), for any x without zeros.

    Corrected: `least_norm`, the largest entry of y's sign.
    """
    return float(np.abs(np.asarray(x, dtype=np.float64)).max())


def least_sharpness(x: Any, y: float) -> float:
    """min S = y x_min (proof of Lemma D.2). Corrected: 4 y x_min."""
    return float(y * np.min(x))


def norm_hessian(x: Any, w: Any) -> Floats:
    """P diag((1 − ⟨w, xw⟩/‖xw‖²) x) P (proof of Lemma D.1 i). Corrected: `Manifold.riemannian`, diag(1 − (…)·x)."""
    x, w = np.asarray(x, dtype=np.float64), np.asarray(w, dtype=np.float64)
    n = x * w
    P = np.eye(len(x)) - np.outer(n, n) / (n @ n)
    return np.asarray(P @ np.diag((1 - w @ n / (n @ n)) * x) @ P)


def positive(x: Any, y: float, lr: float) -> bool:
    """2ηλxᵢ + νxᵢ < 1 on the support (Lemma E.1). Corrected: 2ηλxᵢ² + νxᵢ < 1, as in its proof."""
    x = np.asarray(x, dtype=np.float64)
    lam, nu = multipliers(x, y, lr)
    return bool((2 * lr * lam * x + nu * x < 1).all())


def expected_error(ratio: Any, k: Any, moments: Moments) -> Floats:
    """½(σ² + Σ_kk (y/x_k)² + μ_k y/x_k) (Prop. E.2 i and ii). Corrected: −2 μ_k y/x_k."""
    ratio = np.asarray(ratio, dtype=np.float64)
    return 0.5 * (moments.sigma2 + np.diag(moments.Sigma)[k] * ratio**2 + moments.mu[k] * ratio)


def logistic_loss(w: Any, x2: Any) -> float:
    """½(log(1 − g(b)) + log g(z + b)) (appendix F): never positive, unbounded below. Corrected: `two_points.loss`."""
    return -loss(w, x2)


def logistic_quadratic(z: float, b: float) -> tuple[float, float, float]:
    """λ² + (½g′(b) + g′(z + b))λ + ¼g′(b)g′(z + b) (proof of F.1): both roots are negative, and the "maximal
    solution" is not the sharpness. Corrected: `two_points.quadratic`, the linear term negative.
    """
    p, q = float(slope(b)), float(slope(z + b))
    return 1.0, p / 2 + q, p * q / 4


def logistic_matrix(z: float, b: float, lam: float) -> Floats:
    """((½g′(b) + λ, ½g′(z + b)), (½g′(z + b), g′(z + b) + λ)) (proof of F.1). Corrected: ½g′(b) at the upper right."""
    p, q = float(slope(b)), float(slope(z + b))
    return np.array([[p / 2 + lam, q / 2], [q / 2, q + lam]])


def small_mean_error(d: int, c: float) -> float:
    """Γ(d/2 + ½)/(Γ(d/2)Γ(½)) ∫_{−1}^c (1 − t²)^{d/2 − 1} dt (appendix F): the sphere of ℝ^{d+1}.

    Corrected: `two_points.isotropic`, for x̃ ∈ ℝᵈ.
    """
    return isotropic(d + 1, c)


def large_mean_error(d: int, m: float, c: float) -> float:
    """(2π)^{−(d−1)/2} Φ(−(1 − c)m/√2) (appendix F, last lines). Corrected: without the factor in front."""
    return float((2 * np.pi) ** (-(d - 1) / 2)) * projected_error(m, c)


def large_mean_integral(d: int, m: float, c: float) -> float:
    """1/(√2 (2π)^{d/2}) ∫_{−∞}^{−(1−c)m²} e^{−x²/4} dx (appendix F, before that). Corrected: −(1−c)m, and d = 1."""
    from scipy.special import ndtr

    # ∫_{−∞}^{s} e^{−x²/4} dx = 2√π Φ(s/√2)
    return float(2 * np.sqrt(np.pi) * ndtr(-(1 - c) * m**2 / np.sqrt(2)) / (np.sqrt(2) * (2 * np.pi) ** (d / 2)))


def projected_error(m: float, c: float) -> float:
    """P[⟨g₀ + g₀′, μ⟩ ≤ −(1 − c)m²] = Φ(−(1 − c)m/√2), exact for this event, but no approximation of the error.

    The step before divides by ‖μ‖² instead of the norms of the points, which changes the exponent: the error falls
    like e^{−(1−c)m²/2}, this like e^{−(1−c)²m²/4}.
    """
    from scipy.special import ndtr

    return float(ndtr(-(1 - c) * m / np.sqrt(2)))
