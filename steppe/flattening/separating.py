"""Unit vectors that separate each point of a set from all others, and networks with one neuron for each point."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from steppe import check
from steppe._result import Rows
from steppe.training_set import Floats, Params, inputs

__all__ = ["Separation", "deep", "first_layer", "hypercube", "separate", "sim_ln", "sphere", "widest"]


def __dir__() -> list[str]:
    return list(__all__)


@dataclass(frozen=True, repr=False)
class Separation(Rows, index="point", columns=("offsets", "gaps")):
    """wᵢ·xᵢ = offsetᵢ and wᵢ·x ≤ offsetᵢ − gapᵢ, gapᵢ > 0, at every other point x; ‖wᵢ‖ = 1.

    It exists for extreme points (wen2023, Definition 4.1).
    """

    vectors: Floats
    offsets: Floats
    gaps: Floats


def separate(x: Any) -> Separation:
    """In closed form for corners of the hypercube and for points on a sphere; else by one quadratic program for each
    point."""
    points = inputs(x)
    if np.all(np.abs(points) == 1):
        return hypercube(points)
    norms = np.linalg.norm(points, axis=1)
    if norms[0] > 0 and np.ptp(norms) <= 16 * np.finfo(float).eps * norms[0]:
        return sphere(points)
    return widest(points)


def hypercube(x: Any) -> Separation:
    """wᵢ = xᵢ/√d separates xᵢ ∈ {−1, 1}^d from all other corners, in x or not, by 2/√d (Proposition 4.1).

    >>> hypercube([[1, 1, 1, 1]]).gaps.tolist()
    [1.0]
    """
    points = inputs(x)
    if not np.all(np.abs(points) == 1):
        bad = float(points[np.abs(points) != 1][0])
        check.refuse("x", "made of −1 and 1", bad, "Use separate for other points.")
    root = np.sqrt(points.shape[1])
    return Separation(points / root, np.full(len(points), root), np.full(len(points), 2 / root))


def sphere(x: Any) -> Separation:
    """wᵢ = xᵢ/‖xᵢ‖ for points of one norm R: wᵢ·(xᵢ − xⱼ) = ‖xᵢ − xⱼ‖²/2R."""
    points = inputs(x)
    norms = np.linalg.norm(points, axis=1)
    return _verified(points, points / norms[:, None])


def widest(x: Any) -> Separation:
    """wᵢ with the largest smallest cosine to xᵢ − xⱼ, j ≠ i: the point of their normalised hull nearest to 0.

    >>> widest([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]).vectors[0].round(6).tolist()
    [-0.707107, -0.707107]
    """
    points = inputs(x)
    return _verified(points, np.stack([_nearest(points, i) for i in range(len(points))]))


def _nearest(points: Floats, i: int) -> Floats:
    """min ‖w‖ with ĝⱼ·w ≥ 1, ĝⱼ the unit vectors along xᵢ − xⱼ, as non-negative least squares (Lawson, Hanson 1974).

    Unit lengths do not change which w separate the point, and keep close neighbours (a gap of h²/2 on a circle) well
    conditioned.
    """
    from scipy.optimize import nnls

    away = points[i] - np.delete(points, i, axis=0)
    if len(away) == 0:
        return np.eye(1, points.shape[1]).reshape(-1)
    lengths = np.linalg.norm(away, axis=1)
    if lengths.min() == 0:
        check.refuse("x", "without repeated rows", f"row {i} twice", "Keep one of them.")
    away = away / lengths[:, None]
    system = np.vstack([away.T, np.ones(len(away))])
    weights, _ = nnls(system, np.eye(len(system))[-1], maxiter=50 * len(away))
    vector: Floats = weights @ away
    length = float(np.linalg.norm(vector))
    # A sum of unit vectors that is 0 up to rounding: 0 is in their hull, and no w separates the point.
    if length < 1e-12 or np.min(away @ vector) <= 0:
        others = np.delete(np.arange(len(points)), i)[weights > 0].tolist()
        got = f"point {i}, {points[i].tolist()}, in the convex hull of points {others}"
        remedy = "Remove it: steppe.data.is_extreme says which points are vertices."
        check.refuse("x", "a set of extreme points (Definition 4.1)", got, remedy)
    unit: Floats = vector / length
    return unit


def _verified(points: Floats, vectors: Floats) -> Separation:
    """The separation with measured gaps, which hold in spite of rounding."""
    products = vectors @ points.T
    offsets = np.diagonal(products).copy()
    rounding = 8 * np.finfo(float).eps * np.abs(points).sum(axis=1).max()
    differences = offsets[:, None] - products
    np.fill_diagonal(differences, np.inf)
    gaps = np.min(differences, axis=1)
    if not np.all(gaps > rounding):
        i = int(np.argmin(gaps))
        j = int(np.argmin(differences[i]))
        got = f"point {i} only {gaps[i]:.1e} beyond point {j} in every direction"
        check.refuse("x", "a set of extreme points, apart by more than rounding", got, "Remove one of the two.")
    # A single point has no others: any gap holds.
    return Separation(vectors, offsets, np.where(np.isfinite(gaps), gaps, 1.0))


def deep(separation: Separation, norm: Floats, y: Floats, depth: int, *, fraction: float = 0.5) -> Params:
    """A network of depth D in which each separated point excites one neuron in each layer, the flattest interpolator:
    r = (‖x′‖/|y|)^{1/D}; activations |y| r^{D−1}, …, |y| r, then W_D = sign(y)/r (appendix A.3.1).

    If y = 0 the neuron is silent: an active one would cost ‖a‖², and the bound is 0. Between hidden layers a neuron
    inhibits all others, W_j = diag(1/r)(2I − 11ᵀ): with the printed 0 the others would be at the kink of relu.
    """
    D = check.integer("depth", depth, minimum=2, remedy="Count every weight matrix, the last vector too.")
    active = y != 0
    r = np.where(active, norm / np.where(active, np.abs(y), norm), 1.0) ** (1 / D)
    params = first_layer(separation, np.abs(y) * r ** (D - 1), fraction)
    for layer in range(2, D):
        params[f"W{layer}"] = (2 * np.eye(len(y)) - 1) / r[:, None]
    params[f"W{D}"] = np.sign(y) / r
    return params


def sim_ln(separation: Separation, norm: Floats, y: Floats, eps: float, *, fraction: float = 0.5) -> Params:
    """2-MLP-Sim-LN: normalised (a = 2ε, W₂ = y) if ‖x′‖|y| > ε/2, else a = √(ε‖x′‖|y|), W₂ = εy/a, 0 for y = 0.

    The proof of Theorem 5.1 switches at ε instead: between ε/2 and ε its neuron costs (2/ε)‖x′‖|y| > 1.
    """
    eps = check.number("eps", eps, above=0.0)
    linear = norm * np.abs(y) <= eps / 2
    height = np.where(linear, np.sqrt(eps * norm * np.abs(y)), 2 * eps)
    params = first_layer(separation, height, fraction)
    params["W2"] = np.where(linear, eps * y / np.where(height > 0, height, 1.0), y)
    return params


def first_layer(separation: Separation, height: Floats, fraction: float = 0.5) -> Params:
    """relu(W₁x + b₁) equals `height` at the point of the neuron, and falls to 0 within `fraction` of the gap to the
    others."""
    fraction = check.number("fraction", fraction, above=0.0)
    if fraction >= 1:
        check.refuse("fraction", "below 1", fraction, "At 1 the nearest other point is at the kink of relu.")
    epsilon = fraction * separation.gaps
    slope = height / epsilon
    # A silent neuron has bias −1: inactive everywhere, and away from the kink.
    bias = np.where(height > 0, slope * (epsilon - separation.offsets), -1.0)
    return {"W1": slope[:, None] * separation.vectors, "b1": bias}
