"""Constants of the appendix of wen2023: norms against trace, moments of long vectors, Rademacher complexities."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from steppe import check
from steppe.training_set import Floats, Params, inputs

# Lemma A.11: the trace of a 2-MLP-No-Bias is ‖W₁‖²_F + d‖W₂‖² up to constants, which the inputs decide.


@dataclass(frozen=True)
class NormConstants:
    """C₁ ≤ `lower` and `largest` ≤ C₂ ≤ `upper`.

    `upper` is proven; `lower` and `largest` are the extremes that a search found. A `lower` of 0 is exact.
    """

    lower: float
    largest: float
    upper: float


def norm_constants(x: Any, *, directions: int = 256, steps: int = 200, key: int = 0) -> NormConstants:
    """The constants of Lemma A.11 for the inputs x: C₁ (‖W₁‖²_F + d‖W₂‖²) ≤ tr ∇²L ≤ C₂ (…) for every interpolator.

    C₂ ≤ 2 max(λ_max(XᵀX/n), Σ‖xᵢ‖²/nd). C₁ is the least value over half-spaces, a hard problem. If all inputs lie in
    one half-space, C₁ is 0, because a silent neuron costs nothing: a linear program decides this, and n ≥ Cd log d
    excludes it. Otherwise both extremes are searched for: along the axes and their pairs, and by `steps` of descent
    and of ascent from `directions` random starts.

    >>> x = np.array([[a, b] for a in (1.0, -1.0) for b in (1.0, -1.0)])
    >>> round(norm_constants(x).lower, 12)                          # w = (1, 1): one input of four is active
    0.5
    """
    points = inputs(x)
    n, d = points.shape
    covariance = points.T @ points / n
    eigenvalues, axes = np.linalg.eigh(covariance)
    upper = 2 * max(float(eigenvalues[-1]), float(np.trace(covariance)) / d)
    check.integer("directions", directions, minimum=1)
    random = np.random.default_rng(key).standard_normal((directions, d))
    lowered = raised = _normalised(np.concatenate([random, axes.T, -axes.T, -points.mean(axis=0, keepdims=True)]))
    starts = np.concatenate([lowered, _pairs(d)])
    for _ in range(check.integer("steps", steps, minimum=0)):
        # Σ relu(w·xᵢ)² is convex and of degree 2: at its own gradient it is no smaller.
        raised = _normalised(np.maximum(raised @ points.T, 0) @ points)
        # A step of 1/Lipschitz against the gradient, then back onto the sphere.
        lowered = _normalised(lowered - np.maximum(lowered @ points.T, 0) @ points / (n * eigenvalues[-1] + 1e-300))
    ratios = np.concatenate([_ratios(points, w) for w in (starts, lowered, raised)])
    lower = 0.0 if _in_half_space(points) else float(ratios.min())
    return NormConstants(lower, float(ratios.max()), upper)


def squared_norms(params: Params) -> float:
    """‖W₁‖²_F + d‖W₂‖², which Lemma A.11 compares with the trace."""
    W1, W2 = params["W1"], params["W2"]
    return float(np.sum(W1**2) + W1.shape[1] * np.sum(W2**2))


def path_norm(params: Params) -> float:
    """Σⱼ ‖W₁ⱼ‖|W₂ⱼ|, bounded by a constant at the flattest nets (Lemma 3.1).

    >>> path_norm({"W1": np.array([[3.0, 4.0]]), "W2": np.array([-2.0])})
    10.0
    """
    return float(np.sum(np.linalg.norm(params["W1"], axis=1) * np.abs(params["W2"])))


def _ratios(points: Floats, w: Floats) -> Floats:
    """A(w) for each unit row w, then B(w) for each."""
    n, d = points.shape
    products = w @ points.T
    # Rounding must not activate an input on the boundary, where corners of the hypercube often are.
    products[np.abs(products) < 1e-12 * np.abs(points).sum(axis=1).max()] = 0
    A = (products > 0) @ np.sum(points**2, axis=1) * 2 / (n * d)
    B = np.sum(np.maximum(products, 0) ** 2, axis=1) * 2 / n
    return np.concatenate([A, B])


def _pairs(d: int) -> Floats:
    """±eᵢ and ±eᵢ ± eⱼ: on a hypercube these have the most inputs on their boundary."""
    eye = np.eye(d)
    if d > 64:
        return np.concatenate([eye, -eye])
    i, j = np.triu_indices(d, 1)
    plus, minus = eye[i] + eye[j], eye[i] - eye[j]
    return _normalised(np.concatenate([eye, -eye, plus, -plus, minus, -minus]))


def _in_half_space(points: Floats) -> bool:
    """Is there w ≠ 0 with w·xᵢ ≤ 0 for all i?"""
    from scipy.optimize import linprog

    n, d = points.shape
    if np.linalg.matrix_rank(points) < d:
        return True
    scaled = points / np.abs(points).max()
    found = linprog(scaled.sum(axis=0), A_ub=scaled, b_ub=np.zeros(n), bounds=(-1, 1), method="highs")
    return bool(found.fun < -1e-6)


def _normalised(w: Floats) -> Floats:
    lengths = np.linalg.norm(w, axis=1, keepdims=True)
    # 0, the mean of symmetric inputs, has no direction: take the first axis.
    return np.where(lengths > 0, w / np.where(lengths > 0, lengths, 1.0), np.eye(1, w.shape[1]))


# How often a subgaussian vector with identity covariance is long (Lemma A.19, with its constants corrected).


def sphere_fourth_moment(d: int) -> float:
    """E v₁⁴ = 3/(d(d + 2)), v uniform on the unit sphere of R^d; Lemma A.19 prints 3/((d + 2)(d + 4)).

    >>> sphere_fourth_moment(1), sphere_fourth_moment(2)            # v = ±1; E cos⁴ = 3/8
    (1.0, 0.375)
    """
    d = check.integer("d", d, minimum=1)
    return 3 / (d * (d + 2))


def fourth_moment(d: int, sigma: float) -> float:
    """8 d(d + 2)(e^{σ²/2} − 3/2) ≥ E‖x‖⁴ for σ-subgaussian x with covariance I (proof of Lemma A.19, corrected).

    It follows from 1 + ½ E‖x‖² E v₁² + (1/24) E‖x‖⁴ E v₁⁴ ≤ e^{σ²/2}. Unit variance needs σ ≥ 1, and then the bracket
    is positive.

    >>> fourth_moment(30, 1.0) >= 30**2                             # x on the hypercube has ‖x‖⁴ = d²
    True
    """
    return 24 / sphere_fourth_moment(d) * _bracket(sigma)


def long_probability(d: int, sigma: float) -> float:
    """d / (32 (d + 2)(e^{σ²/2} − 3/2)) ≤ Pr(‖x‖² > d/2), by Paley and Zygmund (Lemma A.19, corrected).

    >>> 0 < long_probability(30, 1.0) < 1
    True
    """
    return d**2 / (4 * fourth_moment(d, sigma))


def _bracket(sigma: float) -> float:
    sigma = check.number("sigma", sigma, minimum=1.0, remedy="Unit variance makes a subgaussian parameter ≥ 1.")
    return math.exp(sigma**2 / 2) - 1.5


# Rademacher complexity of a 2-MLP-No-Bias with Σ ‖W₁ⱼ‖|W₂ⱼ| ≤ C, and the test error that it allows (appendix A.6.2).


def linear(x: Any) -> float:
    """√(Σ ‖xᵢ‖²)/n ≥ R_S({x ↦ w·x : ‖w‖ ≤ 1}) = E‖Σ σᵢxᵢ‖/n (Lemma A.25, which prints the first step as =).

    >>> linear([[3.0, 4.0], [0.0, 0.0]])
    2.5
    """
    points = inputs(x)
    return float(np.sqrt(np.sum(points**2)) / len(points))


def no_bias(C: float, B: float, n: int) -> float:
    """2CB/√n ≥ R_S({f_θ : Σ ‖W₁ⱼ‖|W₂ⱼ| ≤ C}) for n inputs of norm at most B (Lemma A.24).

    >>> no_bias(1.0, 5.0, 100)
    1.0
    """
    C, B = check.number("C", C, minimum=0.0), check.number("B", B, minimum=0.0)
    return float(2 * C * B / np.sqrt(check.integer("n", n, minimum=1)))
