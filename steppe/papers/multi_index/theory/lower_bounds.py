"""Lower bounds of multi-index: on the flatness for given inner weights (Lemma 5), and for any (Theorem 1)."""

from typing import Any

import numpy as np

from steppe import check
from steppe.activations import Homogeneous
from steppe.examples import Floats, examples
from steppe.flattening._interpolator import Features


def least_norm(phi: Any, y: Any) -> Floats:
    """a = Φᵀ(ΦΦᵀ)⁻¹y, the interpolant of least ‖a‖."""
    a: Floats = np.linalg.lstsq(np.asarray(phi, dtype=float), np.asarray(y, dtype=float), rcond=None)[0]
    return a


def from_least_norm(features: Features, y: Any, *, a: Floats | None = None) -> float:
    """Lemma 5 with the exact weights q: no interpolator with these inner weights is flatter.

    The dual of Eq. 3 at λ = t (ΦΦᵀ)⁻¹y is t‖a‖² minus the conjugate at ta, a of least norm; the best t gives
    ‖a‖² minₖ q_k/|a_k| for p = 1 and (‖a‖²/‖a/q^{1/p}‖_s)^p otherwise, 1/p + 1/s = 1.

    >>> f = Features(np.array([[1.0, 1.0]]), np.array([3.0, 3.0]), 1.0)
    >>> round(from_least_norm(f, [2.0]), 12)                        # a = (1, 1): attained
    6.0
    """
    a = least_norm(features.phi, y) if a is None else a
    used = a != 0
    if not used.any():
        return 0.0
    square, p = float(a @ a), features.p
    a, q = np.abs(a[used]), features.q[used]
    if p == 1:
        return square * float(np.min(q / a))
    s = p / (p - 1)
    return float((square / np.sum((a / q ** (1 / p)) ** s) ** (1 / s)) ** p)


def pointwise(x: Any, y: Any, m: int, activation: Homogeneous, *, bias: bool = False) -> float:
    """(2/n) (c + 1) c^{c/(c+1)} α^{2/(c+1)} m^{1−p} Σ (|yᵢ|‖xᵢ‖)^p, p = 2c/(c + 1), α the smaller of |α₊|, |α₋| that
    is not 0: no interpolator of width m has a smaller tr ∇²L, whatever its inner weights.

    A neuron that contributes z = aσ at xᵢ has σ² + (aσ′)²‖xᵢ‖² ≥ (c + 1) c^{c/(c+1)} α^{2/(c+1)} (|z|‖xᵢ‖)^p there, and
    the z add up to yᵢ. The rate of Theorem 1 without its assumptions; for ReLU the bound of wen2023. With `bias`
    ‖(xᵢ, 1)‖ takes the place of ‖xᵢ‖.

    >>> from steppe.activations import rectifier
    >>> pointwise([[3.0, 4.0]], [2.0], 7, rectifier)                # 4 · 5 · 2, for every width
    40.0
    """
    points, labels = examples(x, y)
    c, m = activation.degree, check.integer("m", m, minimum=1)
    p = 2 * c / (c + 1)
    sizes = [abs(s) for s in (activation.positive, activation.negative) if s != 0]
    if not sizes:
        return 0.0 if not labels.any() else np.inf
    lengths = np.sqrt(np.sum(points**2, axis=1) + (1.0 if bias else 0.0))
    scale = (c + 1) * c ** (c / (c + 1)) * min(sizes) ** (2 / (c + 1)) * m ** (1 - p)
    return float(2 * scale * np.mean((np.abs(labels) * lengths) ** p))
