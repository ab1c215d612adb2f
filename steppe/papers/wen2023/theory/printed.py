"""The formulas and networks of wen2023 that are wrong as printed, as printed. Each names its corrected twin."""

import math
from typing import Any

import numpy as np

from steppe import check
from steppe.papers.wen2023.theory.generalising import Arcs, arcs, unit
from steppe.training_set import Floats, Params, appended_norm, distinct

# Bounds and losses.


def sim_bn_norms(gamma: Any, W2: Any) -> float:
    """‖W₂‖² + ‖γ‖² (Lemma A.3 as printed): a true bound, but its infimum is half that of the trace.

    Corrected: `bounds.sim_bn_norms`, twice as large.
    """
    return float(np.sum(np.square(W2)) + np.sum(np.square(gamma)))


def logistic_loss(a: Any, b: Any, p: float) -> Floats:
    """−p log(e^{ba}/(1 + eᵃ)) − (1 − p) log(e^{(1−b)a}/(1 + eᵃ)), b ∈ {0, 1} (Definition A.2 as printed).

    Minimal at (2b − 1) ln(p/(1 − p)), the opposite of the stated (2b − 1)γ_p. Corrected: p and 1 − p exchanged.
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return np.logaddexp(0, a) - p * b * a - (1 - p) * (1 - b) * a


def logistic_curvature(p: float) -> float:
    """1/(p(1 − p)) (Lemma A.13 as printed). Corrected: `bounds.logistic_curvature`, its inverse."""
    return 1 / (p * (1 - p))


def zero_one(y: Any, f: Any) -> float:
    """Pr(y f > 0) (section 2 as printed): this is the accuracy. Corrected: Pr(y f ≤ 0)."""
    return float(np.mean(np.asarray(y) * np.asarray(f) > 0))


def fourth_moment(d: int, sigma: float) -> float:
    """(e^{σ²/2} − 3/2)(d + 2)(d + 4)/3 (proof of Lemma A.19 as printed), below d² on the hypercube.

    Corrected: `complexity.fourth_moment`.
    """
    return (math.exp(sigma**2 / 2) - 1.5) * (d + 2) * (d + 4) / 3


def long_probability(d: int, sigma: float) -> float:
    """3d²/(4(d + 2)(d + 4)(e^{σ²/2} − 3/2)) (Lemma A.19 as printed), above 1 for σ = 1 and d ≥ 4.

    Corrected: `complexity.long_probability`.
    """
    return d**2 / (4 * fourth_moment(d, sigma))


# Constructions.

_CORNERS = np.array([(1, 1), (1, -1), (-1, 1), (-1, -1)], dtype=float)


def xor(d: int) -> Params:
    """r(±1, ±1, 0, …), b₁ = −r, W₂ = ±1/r, r = (d² + 1)^¼ (Eq. 5 as printed, but for its index of W₂, off by one).

    It interpolates with trace 2((d + 1)/√(d² + 1) + √(d² + 1)): 62.1 for d = 30. Corrected: `generalising.xor`, 22.3.
    """
    r = (check.integer("d", d, minimum=2) ** 2 + 1) ** 0.25
    W1 = np.zeros((4, d))
    W1[:, :2] = r * _CORNERS
    return {"W1": W1, "b1": np.full(4, -r), "W2": _CORNERS.prod(axis=1) / r}


def junta(support: Any, labels: Any, d: int, radius: float, *, separating: bool = False) -> Params:
    """W₁ⱼ = r vⱼ/ε, b₁ⱼ = r(ε − wⱼ·vⱼ)/ε, W₂ⱼ = yⱼ/r, r² = |yⱼ|(R² + 1) (Eq. 16 as printed), yⱼ ≠ 0.

    It does not interpolate. With `separating`, W₁ has wⱼ in place of vⱼ: it then interpolates, with trace
    2E|y|(R² + 2). Corrected: `generalising.junta`.
    """
    from steppe.flattening.separating import separate

    v, y = distinct(support, labels)
    if np.any(y == 0):
        check.refuse("labels", "other than 0, where Eq. 16 divides 0 by 0", 0, "Use generalising.junta.")
    separation = separate(v)
    epsilon = separation.gaps / 2
    r = np.sqrt(np.abs(y) * (radius**2 + 1))
    W1 = np.zeros((len(v), d))
    W1[:, : v.shape[1]] = (r / epsilon)[:, None] * (separation.vectors if separating else v)
    return {"W1": W1, "b1": r * (epsilon - separation.offsets) / epsilon, "W2": y / r}


def circle(x: Any, y: Any) -> Params:
    """W₁ⱼ = r wⱼ/wⱼ·zⱼ, b₁ⱼ = r(wⱼ·zⱼ − wⱼ·vⱼ)/wⱼ·zⱼ, W₂ⱼ = yⱼ/r, r² = |yⱼ|√(R² + 1) (Eq. 17 as printed).

    zⱼ is the midpoint of the arc before vⱼ and wⱼ is perpendicular to zⱼzⱼ₊₁. A neuron is active where
    w·v > w·vⱼ − w·zⱼ ≈ 0, on half of the circle: the net does not interpolate. Corrected: `generalising.circle`.
    """
    data = arcs(x, y)
    w, height, end = _middles(data)
    r = np.sqrt(np.abs(data.labels) * data.norm)
    return _on_circle(data, w, r / end, r * (end - height) / end)


def circle_arcs(x: Any, y: Any) -> Params:
    """Eq. 17 with the bias its proof needs, W₁ⱼ·v + b₁ⱼ = r(wⱼ·v − wⱼ·zⱼ)/(wⱼ·vⱼ − wⱼ·zⱼ): zero outside zⱼzⱼ₊₁.

    It interpolates and is flattest with n neurons, but f falls to 0 at each zⱼ: the mean square error does not become
    O(δ²) as Proposition A.2 says. For equal arcs it tends to E y²/5. For random arcs it is larger, since a neuron
    peaks in the middle of its arc and not at vⱼ. Corrected, at width 3n: `generalising.circle`.
    """
    data = arcs(x, y)
    w, height, end = _middles(data)
    r = np.sqrt(np.abs(data.labels) * data.norm)
    return _on_circle(data, w, r / (height - end), -r * end / (height - end))


def deep(x: Any, y: Any, depth: int) -> Params:
    """W_j = diag(1/r), r = u = 1 where y = 0 (proof of Theorem 4.1, appendix A.3.1, as printed).

    A zero label then costs 1 where the bound has 0; and for D ≥ 3 the inactive neurons of layers 2 … D − 1 have
    input exactly 0, on relu's kink, so f is not differentiable there. Corrected: `memorising.deep`.
    """
    from steppe.flattening import separating

    points, labels = distinct(x, y)
    separation = separating.separate(points)
    params = separating.deep(separation, appended_norm(points), labels, depth)
    zero = labels == 0
    if zero.any():
        lit = separating.first_layer(separation, np.ones(len(labels)))
        params["W1"][zero], params["b1"][zero] = lit["W1"][zero], lit["b1"][zero]
    return {
        name: np.diag(np.diagonal(W)) if name not in ("W1", "b1") and W.ndim == 2 else W for name, W in params.items()
    }


def sim_ln(x: Any, y: Any, eps: float) -> Params:
    """W₂ = y, a = 2ε if ‖x′‖|y| > ε; W₂ = y(ε/‖x′‖|y|)^½, a = (ε‖x′‖|y|)^½ if not; W₂ = 0, a = 2ε if y = 0.

    The proof of Theorem 5.1 as printed: it changes over at ε instead of ε/2, and a zero label costs 1 where the bound
    has 0. Corrected: `memorising.sim_ln`.
    """
    from steppe.flattening import separating

    points, labels = distinct(x, y)
    size = appended_norm(points) * np.abs(labels)
    linear = (size > 0) & (size <= eps)
    params = separating.first_layer(separating.separate(points), np.where(linear, np.sqrt(eps * size), 2 * eps))
    params["W2"] = labels * np.where(linear, np.sqrt(eps / np.where(linear, size, 1.0)), 1.0)
    return params


def sim_bn_xor(d: int) -> Params:
    """(±1, ±1, 0, …), b₁ = −1, γ = 1, W₂ = ½ for all four neurons (proof of Lemma A.1 as printed): f = 1 everywhere.

    Corrected: `generalising.sim_bn_xor`, W₂ with the signs of x₁x₂.
    """
    W1 = np.zeros((4, check.integer("d", d, minimum=2)))
    W1[:, :2] = _CORNERS
    return {"W1": W1, "b1": np.full(4, -1.0), "gamma": np.ones(4), "W2": np.full(4, 0.5)}


def _middles(data: Arcs) -> tuple[Floats, Floats, Floats]:
    """wⱼ, wⱼ·vⱼ and wⱼ·zⱼ = wⱼ·zⱼ₊₁, from half of the arcs before and after each point."""
    before, after = np.roll(data.arcs, 1) / 2, data.arcs / 2
    return (unit(data.angles + (after - before) / 2), np.cos((after - before) / 2), np.cos((after + before) / 2))


def _on_circle(data: Arcs, w: Floats, slope: Floats, bias: Floats) -> Params:
    W1 = np.zeros((len(w), data.d))
    W1[:, :2] = slope[:, None] * w
    return {"W1": W1, "b1": bias, "W2": np.sign(data.labels) * np.sqrt(np.abs(data.labels) / data.norm)}
