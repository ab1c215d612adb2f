"""The other side of "flattest interpolators generalise": the worst one found among those that are nearly as flat."""

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats
from steppe.constructions.multi_index.moments import product_mean
from steppe.constructions.multi_index.weights import Features
from steppe.problems.networks.homogeneous import Homogeneous


def spoiled(W: Floats, a: Floats, features: Features, activation: Homogeneous, *, flatness: float) -> Floats:
    """Outer weights a + tv with the same outputs on the examples and Σ q|a + tv|^p = `flatness`.

    v maximises E(Σ_k v_k σ(w_k·x))² over Φv = 0 at a given Σ_k q_k^{2/p} v_k²; of t and −t the one that adds more.

    >>> f = Features(np.array([[1.0, 1.0]]), np.array([1.0, 1.0]), 1.0)       # v = (1, −1)
    >>> W = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> np.abs(spoiled(W, np.array([0.5, 0.5]), f, Homogeneous(1.0, 0.0, 1), flatness=2.0)).sum().round(9).item()
    2.0
    """
    reached = float(features.q @ np.abs(a) ** features.p)
    if flatness < reached:
        check.refuse("flatness", f"at least that of a, {reached:g}", flatness, "Allow more.")
    scale = features.q ** (1 / features.p)
    _, values, rows = np.linalg.svd(features.phi / scale, full_matrices=True)
    kernel = rows[int(np.sum(values > 1e-11 * values[0])) :]
    if len(kernel) == 0:
        return a
    K = product_mean(activation, activation, W, W) / scale / scale[:, None]
    v = kernel.T @ np.linalg.eigh(kernel @ K @ kernel.T)[1][:, -1] / scale
    size = [_reach(a, sign * v, features, flatness) for sign in (1.0, -1.0)]
    t = size[0] if size[0] >= size[1] else -size[1]
    return a + t * v


def _reach(a: Floats, v: Floats, features: Features, flatness: float) -> float:
    """The largest t with Σ q|a + tv|^p ≤ flatness, convex in t: by bisection."""

    def cost(t: float) -> float:
        return float(features.q @ np.abs(a + t * v) ** features.p)

    low, high = 0.0, 1.0
    while cost(high) < flatness:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if cost(middle) <= flatness else (low, middle)
    return low
