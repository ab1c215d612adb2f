"""What a neuron costs in flatness: q_k |a_k|^p, the least of its rescalings."""

from typing import Any, NamedTuple

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats, inputs
from steppe.problems.networks.homogeneous import Homogeneous


class Features(NamedTuple):
    """Φ_ik = σ(w_k·xᵢ) and the weights q_k of the flatness Σ_k q_k |a_k|^p, p = 2c/(c + 1)."""

    phi: Floats
    q: Floats
    p: float


def features(W: Any, x: Any, activation: Homogeneous, *, b: Any = None) -> Features:
    """tr ∇²L at an interpolator is Σ_k (A_k + a_k² B_k), A_k = (2/n) Σᵢ σ(hᵢₖ)², B_k = (2/n) Σᵢ σ′(hᵢₖ)² ‖xᵢ‖², in
    the loss (1/n) Σ (f − y)²; with inner biases ‖xᵢ‖² + 1 takes the place of ‖xᵢ‖² (D.6).

    Over all w_k → βw_k, a_k → a_k β^{−c} the least is q_k |a_k|^p with q_k = (c + 1) c^{−c/(c+1)} A_k^{1/(c+1)}
    B_k^{c/(c+1)} (multi-index, Lemma 1 and Eq. 3).

    >>> features([[1.0]], [[2.0]], Homogeneous(1.0, 0.0, 1)).q.round(12).tolist()     # 2 √(2·4 · 2·4)
    [16.0]
    """
    points, weights = inputs(x), np.asarray(W, dtype=float)
    if weights.ndim != 2 or weights.shape[1] != points.shape[1] or len(weights) == 0:
        rule = f"of shape (m, {points.shape[1]}), m ≥ 1, as wide as x"
        check.refuse("W", rule, weights.shape, "Pass the inner weights, one row a neuron.")
    check.finite("W", weights)
    h, lengths = points @ weights.T, np.sum(points**2, axis=1)
    if b is not None:
        bias = np.asarray(b, dtype=float)
        if bias.shape != weights.shape[:1]:
            check.refuse("b", f"of shape ({len(weights)},)", bias.shape, "Pass one bias a neuron, or none.")
        h, lengths = h + bias, lengths + 1
    c, n = activation.degree, len(points)
    phi = activation(h)
    A, B = 2 / n * np.sum(phi**2, axis=0), 2 / n * (lengths @ activation.slope(h) ** 2)
    q = (c + 1) * c ** (-c / (c + 1)) * A ** (1 / (c + 1)) * B ** (c / (c + 1))
    return Features(phi, q, 2 * c / (c + 1))
