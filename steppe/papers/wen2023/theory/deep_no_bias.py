"""Flattest nets of depth D ≥ 3 without bias, that memorise or generalise: what wen2023 leaves open (section 6).

‖∇f(x)‖² ≥ D |f|^{2(D−1)/D} ‖x‖^{2/D} holds as with bias (`bounds.deep_no_bias`). It is an equality where, in each
layer, the gradient of f with respect to the activations is parallel to them, and every activation is q times as long as
the one before, q = (|f|/‖x‖)^{1/D}. A first layer of rows ±q v/√K, v from K orthonormal bases, makes ‖a₁‖ = q‖x‖.
Row i of W₂ is then q a₁(xᵢ)/‖a₁(xᵢ)‖ on the neurons that fire at xᵢ and negative on all others: it fires at xᵢ alone,
because any other point of the training set excites one of these.
"""

from typing import Any

import numpy as np

from steppe import check
from steppe.papers.wen2023.theory.generalising import parity_table
from steppe.training_set import Floats, Params, distinct

# With this many random bases in the first layer, points that are no multiples of one another have long been told apart.
_BASES = 64


def memorising(x: Any, y: Any, depth: int = 3) -> Params:
    """One neuron in each layer from the second on for each point. |yᵢ|/‖xᵢ‖ must be the same for all points.

    On corners of the hypercube it puts out 0 at every corner outside the training set.

    >>> {name: W.shape for name, W in memorising([[1.0, 1.0], [1.0, -1.0]], [1.0, -1.0]).items()}
    {'W1': (4, 2), 'W2': (2, 4), 'W3': (2,)}
    """
    points, labels = distinct(x, y)
    return _net(points, labels, np.linalg.norm(points, axis=1), depth)


def generalising(d: int, depth: int = 3) -> Params:
    """f(x) = x₁x₂ on {−1, 1}^d with four neurons in each layer; equally flat on every training set.

    >>> generalising(5)["W1"][:, 2:].any()
    np.False_
    """
    d = check.integer("d", d, minimum=2, remedy="The label x₁x₂ needs two coordinates.")
    corners, labels = parity_table(2)
    params = _net(corners, labels, np.full(4, np.sqrt(d)), depth)
    return params | {"W1": np.pad(params["W1"], ((0, 0), (0, d - 2)))}


def _net(points: Floats, y: Floats, norm: Floats, depth: int) -> Params:
    """The net that separates `points`, flattest for inputs of length `norm` that contain them."""
    D = check.integer("depth", depth, minimum=3, remedy="With two layers no such net is known: see theorem 3.1.")
    ratios = np.abs(y) / norm
    if ratios.min() <= 0 or np.ptp(ratios) > 1e-12 * ratios.max():
        got = f"|y|/‖x‖ from {ratios.min():.4g} to {ratios.max():.4g}"
        check.refuse("y", "proportional to ‖x‖ in absolute value, and not 0", got, "Scale each input to |y|.")
    q = float(ratios[0] ** (1 / D))
    inner = np.linalg.norm(points, axis=1)
    W1 = q * float(norm[0] / inner[0]) * _told_apart(points)
    a = np.maximum(points @ W1.T, 0)
    unit = a / np.linalg.norm(a, axis=1, keepdims=True)
    silent = a == 0
    # What row i has to outweigh at point k, over the activations there of neurons that are silent at point i.
    against = silent.astype(float) @ a.T
    np.fill_diagonal(against, np.inf)
    needed = np.max(unit @ a.T / against, axis=1)
    # On the hypercube this much silences row i at every other corner too.
    brake = np.maximum(2 * needed, np.sqrt(points.shape[1]))
    params = {"W1": W1, "W2": q * np.where(silent, -brake[:, None], unit)}
    for layer in range(3, D):
        params[f"W{layer}"] = q * (2 * np.eye(len(y)) - 1)
    return params | {f"W{D}": q * np.sign(y)}


def _told_apart(points: Floats) -> Floats:
    """Rows ±v/√K, v from K orthonormal bases. No point lies on a kink, and each excites a neuron that is silent at any
    given other one."""
    d, rng = points.shape[1], np.random.default_rng(0)
    bases = [np.eye(d)]
    for _ in range(_BASES):
        rows = np.concatenate([sign * Q for Q in bases for sign in (1.0, -1.0)]) / np.sqrt(len(bases))
        a = points @ rows.T
        apart = (a <= 0).astype(float) @ (a > 0).T > 0
        if np.abs(a).min() > 1e-9 * np.abs(a).max() and (apart | np.eye(len(points), dtype=bool)).all():
            return rows
        # The axes are the first choice because they need the fewest neurons; inputs may have zeros there.
        bases = [*(bases if np.abs(points).min() > 0 else bases[1:]), np.linalg.qr(rng.normal(size=(d, d)))[0]]
    got = "two rows of which one is a positive multiple of the other, or nearly so"
    check.refuse("x", "of pairwise different directions", got, "Without bias such rows have proportional outputs.")
    raise AssertionError
