"""What else could tell a generalising flattest minimiser from a memorising one (question 2 of the paper).

All are read off the contributions c_ij = v_j φ_j(xᵢ) of neuron j to the output on training example i, f(xᵢ) = Σⱼ c_ij.
A memorising net has a neuron for each example; the four-neuron net of P_xor uses each neuron on a quarter of them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]


def known(network: str, depth: int) -> bool:
    return depth == 2 and network in ("no-bias", "bias", "sim-bn", "sim-ln")


def feature_rank(problem: Any, w: Any) -> float:
    """(Σ σ²)²/Σ σ⁴ of the singular values of (c_ij): how many directions the features span."""
    return _participation(np.linalg.svd(_contributions(problem, w), compute_uv=False) ** 2)


def active_neurons(problem: Any, w: Any) -> float:
    """(Σ s)²/Σ s² of the sizes sⱼ = Σᵢ |c_ij|: how many neurons do the work."""
    return _participation(np.abs(_contributions(problem, w)).sum(axis=0))


def sharing(problem: Any, w: Any) -> float:
    """The share of the training examples that a neuron fires on, averaged over neurons by the size of their work.

    1/n for a net that has a neuron for each example.
    """
    c = np.abs(_contributions(problem, w))
    sizes = c.sum(axis=0)
    return float((c > 0).mean(axis=0) @ sizes / max(sizes.sum(), 1e-300))


def path_norm(problem: Any, w: Any) -> float:
    """Σⱼ ‖(W₁, b₁)ⱼ‖ |vⱼ|/sⱼ, sⱼ what the normalisation divides neuron j by, on average over the examples."""
    rows, v, scales, _ = _parts(problem, w)
    return float(np.sum(np.linalg.norm(rows, axis=1) * np.abs(v) * np.mean(1 / scales, axis=0)))


def normalised_margin(problem: Any, w: Any) -> float:
    """min yᵢ f(xᵢ) over the path norm."""
    f = _contributions(problem, w).sum(axis=1)
    return float(np.min(np.asarray(problem.y, float) * f) / max(path_norm(problem, w), 1e-300))


RECORD: dict[str, Callable[[Any, Any], float]] = {
    "feature_rank": feature_rank,
    "active_neurons": active_neurons,
    "sharing": sharing,
    "path_norm": path_norm,
    "normalised_margin": normalised_margin,
}


def _participation(sizes: Floats) -> float:
    return float(sizes.sum() ** 2 / max(float(np.sum(sizes**2)), 1e-300))


def _contributions(problem: Any, w: Any) -> Floats:
    _, v, scales, features = _parts(problem, w)
    contributions: Floats = features / scales * v[None]
    return contributions


def _parts(problem: Any, w: Any) -> tuple[Floats, Floats, Floats, Floats]:
    """Rows of (W₁, b₁), outgoing weights, what the normalisation divides by (n or 1, m or 1), hidden layer (n, m)."""
    params = {name: np.asarray(a, float) for name, a in problem.unravel(w).items()}
    x, kind = np.asarray(problem.x, float), type(problem.predict).__name__
    rows, outer = params["W1"], params["W2"]
    h = x @ rows.T
    if "b1" in params:
        h, rows = h + params["b1"][None], np.column_stack([rows, params["b1"]])
    a = np.asarray(problem.predict.activation(h), float)
    scales = np.ones((1, 1))
    if kind == "SimLN":
        scales = np.maximum(np.linalg.norm(a, axis=1, keepdims=True), problem.predict.eps)
    elif kind == "SimBN":
        root = np.sqrt(np.mean(a**2, axis=0, keepdims=True))
        scales, outer = np.where(root > 0, root, 1), outer * params["gamma"]
    return rows, outer, scales, a
