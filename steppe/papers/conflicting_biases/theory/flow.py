"""Gradient flow of the diagonal network in closed form: each coordinate moves alone in the time τ = −∫ h dt."""

from collections.abc import Callable
from typing import Any

import numpy as np

from steppe import check
from steppe.papers.conflicting_biases.theory.manifold import example
from steppe.training_set import Floats


def flow_path(x: Any, w0: Any, tau: Any, *, depth: int = 2) -> Floats:
    """w(τ) of dw/dτ = L x ⊙ w^{L−1}: w₀e^{2xτ} for L = 2, (w₀^{2−L} − L(L−2)xτ)^{−1/(L−2)} above; (len τ, d).

    w′ = −h(w) L x ⊙ w^{L−1} is this equation in the time τ = −∫ h dt.

    >>> flow_path([1.0, 2.0], [1.0, 1.0], [0.0, 0.5]).round(4).tolist()
    [[1.0, 1.0], [2.7183, 7.3891]]
    """
    point, start = np.asarray(x, dtype=np.float64), _positive(w0)
    tau, L = np.asarray(tau, dtype=np.float64)[:, None], check.integer("depth", depth, minimum=1)
    if L == 1:
        return np.asarray(start + point * tau)
    if L == 2:
        return np.asarray(start * np.exp(2 * point * tau))
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(start ** (2.0 - L) - L * (L - 2) * point * tau, 0.0) ** (-1 / (L - 2)))


def flow_end(x: Any, y: Any, w0: Any, *, depth: int = 2) -> float:
    """The τ at which the flow from w₀ > 0 reaches M; w(τ) there is its limit."""
    from scipy.optimize import brentq

    point, label = example(x, y, depth=depth)
    start = _positive(w0)

    def h(tau: float) -> float:
        return float(flow_path(point, start, [tau], depth=depth)[0] ** depth @ point) - label

    return float(brentq(h, *_bracket(h, *_ends(point, start, depth)), xtol=1e-300, rtol=8.9e-16))


def flow_limit(x: Any, y: Any, w0: Any, *, depth: int = 2) -> Floats:
    """Where the flow from w₀ > 0 ends (Theorem B.1 is its limit w₀ → 0).

    >>> round(float(flow_limit([1.0], 4.0, 0.1)[0]), 12)
    2.0
    """
    point, _ = example(x, y, depth=depth)
    start = np.broadcast_to(np.asarray(w0, dtype=np.float64), point.shape)
    return flow_path(point, start, [flow_end(point, y, start, depth=depth)], depth=depth)[0]


def excess_rate(x: Any) -> float:
    """ε(α) ∝ α^p in Theorem B.1 for y > 0: p = 2(1 − x₂/x_max), x₂ the second largest value among the entries.

    w = α e^{2xτ} with e^{4 x_max τ} → y/(x_max α²), so the other entries are u = α²(y/(x_max α²))^{x/x_max}.

    >>> excess_rate([1.0, 0.25, 0.5])
    1.0
    """
    values = np.unique(np.asarray(x, dtype=np.float64))
    if len(values) < 2 or values[-1] <= 0:
        rule = "of two different entries, the largest positive"
        check.refuse("x", rule, values.tolist(), "Equal entries leave no excess.")
    return float(2 * (1 - values[-2] / values[-1]))


def _positive(w0: Any) -> Floats:
    start = np.asarray(w0, dtype=np.float64)
    if not (start > 0).all():
        remedy = "A zero stays zero: drop it. For even depths signs make no difference: pass |w0|."
        check.refuse("w0", "positive", start.tolist(), remedy)
    return start


def _bracket(h: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Two τ between which the rising function h changes sign, by doubled steps from 0 that end before a blow-up."""
    toward = high if h(0.0) < 0 else low
    near, far = 0.0, float(np.sign(toward)) * 1e-3
    while True:
        far = far if abs(far) < abs(toward) else (near + toward) / 2
        if h(far) == 0 or (h(far) < 0) != (h(0.0) < 0):
            return min(near, far), max(near, far)
        near, far = far, 2 * far


def _ends(x: Floats, start: Floats, depth: int) -> tuple[float, float]:
    if depth <= 2:
        return -np.inf, np.inf
    with np.errstate(divide="ignore"):
        blow_up = start ** (2.0 - depth) / (depth * (depth - 2) * x)
    # The times at which the first coordinate becomes infinite.
    return max(blow_up[x < 0], default=-np.inf), min(blow_up[x > 0], default=np.inf)
