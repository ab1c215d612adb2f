"""Bounds and losses of wen2023 as printed."""

import math
from typing import Any

import numpy as np

from steppe.constructions._examples import Floats


def sim_bn_norms(gamma: Any, W2: Any) -> float:
    """‖W₂‖² + ‖γ‖² (Lemma A.3 as printed): true as a bound, but its infimum is half that of the trace.

    Mended: `bounds.sim_bn_norms`, twice as large.
    """
    return float(np.sum(np.square(W2)) + np.sum(np.square(gamma)))


def logistic_loss(a: Any, b: Any, p: float) -> Floats:
    """−p log(e^{ba}/(1 + eᵃ)) − (1 − p) log(e^{(1−b)a}/(1 + eᵃ)), b ∈ {0, 1} (Definition A.2 as printed).

    Minimal at (2b − 1) ln(p/(1 − p)), the opposite of the stated (2b − 1)γ_p. Mended: p and 1 − p exchanged.
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    loss: Floats = np.logaddexp(0, a) - p * b * a - (1 - p) * (1 - b) * a
    return loss


def logistic_curvature(p: float) -> float:
    """1/(p(1 − p)) (Lemma A.13 as printed). Mended: `smoothing.curvature`, its inverse."""
    return 1 / (p * (1 - p))


def zero_one(y: Any, f: Any) -> float:
    """Pr(y f > 0) (section 2 as printed): the accuracy. Meant is Pr(y f ≤ 0)."""
    return float(np.mean(np.asarray(y) * np.asarray(f) > 0))


def fourth_moment(d: int, sigma: float) -> float:
    """(e^{σ²/2} − 3/2)(d + 2)(d + 4)/3 (proof of Lemma A.19 as printed), below d² on the hypercube.

    Mended: `moments.fourth_moment`.
    """
    return (math.exp(sigma**2 / 2) - 1.5) * (d + 2) * (d + 4) / 3


def long_probability(d: int, sigma: float) -> float:
    """3d²/(4(d + 2)(d + 4)(e^{σ²/2} − 3/2)) (Lemma A.19 as printed), above 1 for σ = 1 and d ≥ 4.

    Mended: `moments.long_probability`.
    """
    return d**2 / (4 * fourth_moment(d, sigma))
