"""Lower bounds of tr ∇²L over all interpolators, L the mean of squares (wen2023).

At an interpolator tr ∇²L = (2/n) Σ ‖∇f(xᵢ)‖² (Lemma 4.1), and each bound is one of ‖∇f(xᵢ)‖² given f(xᵢ) = yᵢ.
The bounds hold at every width; x′ = (x, 1).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from steppe import check
from steppe.training_set import Floats, appended_norm, examples, inputs


def two_layer_bias(x: Any, y: Any) -> float:
    """(4/n) Σ ‖x′ᵢ‖|yᵢ| for f = W₂ · relu(W₁x + b₁), attained on extreme points (Theorem 4.1, Eq. 3).

    >>> round(two_layer_bias(np.ones((1, 30)), [1.0]), 3)           # P_xor in 30 dimensions: 4√31
    22.271
    """
    x, y = examples(x, y)
    return float(4 * np.mean(appended_norm(x) * np.abs(y)))


def two_layer_no_bias(x: Any, y: Any) -> float:
    """(4/n) Σ ‖xᵢ‖|yᵢ| for f = W₂ · relu(W₁x): Eq. 3 without the appended 1; attained on P_xor, but only at
    kinks (`generalising.no_bias_tie`).

    >>> two_layer_no_bias([[3.0, 4.0]], [2.0])
    40.0
    """
    x, y = examples(x, y)
    return float(4 * np.mean(np.linalg.norm(x, axis=1) * np.abs(y)))


def deep_bias(x: Any, y: Any, depth: int) -> float:
    """(2/n) Σ D |yᵢ|^{2(D−1)/D} ‖x′ᵢ‖^{2/D} for depth D, bias in the first layer only (Theorem 4.1, appendix A.3.1).

    >>> round(deep_bias(np.ones((1, 7)), [1.0], 3), 12)             # 2 · 3 · 8^{1/3}
    12.0
    """
    x, y = examples(x, y)
    return _deep(appended_norm(x), y, depth)


def deep_no_bias(x: Any, y: Any, depth: int) -> float:
    """(2/n) Σ D |yᵢ|^{2(D−1)/D} ‖xᵢ‖^{2/D} for depth D without bias: the same proof, with x for x′.

    From depth 3 on it is attained on the cube, by nets that memorise and by nets that generalise (`deep_no_bias`).

    >>> round(deep_no_bias(np.ones((1, 8)), [1.0], 3), 12)          # 2 · 3 · 8^{1/3}
    12.0
    """
    x, y = examples(x, y)
    return _deep(np.linalg.norm(x, axis=1), y, depth)


def _deep(lengths: Floats, y: Floats, depth: int) -> float:
    D = check.integer("depth", depth, minimum=2, remedy="Count every weight matrix, the last vector too.")
    return float(2 * D * np.mean(np.abs(y) ** (2 * (D - 1) / D) * lengths ** (2 / D)))


def sim_ln(x: Any, y: Any, eps: float) -> float:
    """(2/n) Σ min(1, (2/ε)‖x′ᵢ‖|yᵢ|) for 2-MLP-Sim-LN, attained on extreme points (Lemma A.12).

    On P_xor it is 2 for every ε ≤ 2√(d + 1).

    >>> sim_ln(np.ones((1, 3)), [1.0], 4.0), sim_ln(np.ones((1, 3)), [1.0], 8.0)
    (2.0, 1.0)
    """
    x, y = examples(x, y)
    eps = check.number("eps", eps, above=0.0)
    return float(2 * np.mean(np.minimum(1.0, (2 / eps) * appended_norm(x) * np.abs(y))))


def sim_bn(x: Any, y: Any) -> float:
    """4 ⟨y²⟩ / max(⟨y₊²⟩, ⟨y₋²⟩)^½ for 2-MLP-Sim-BN on any data, ⟨·⟩ the mean over examples and y± = relu(±y).

    Lemma A.3 gives tr ≥ 4‖γ ⊙ W₂‖₁; with a ≥ 0 of unit mean square, |⟨y a⟩| ≤ max(⟨y₊²⟩, ⟨y₋²⟩)^½ and
    ⟨y²⟩ = ⟨y f⟩ ≤ ‖γ ⊙ W₂‖₁ max |⟨y a⟩|. It is weaker than `sim_bn_complete` where both apply.

    >>> round(sim_bn([[1.0, 1.0], [1.0, -1.0]], [1.0, -1.0]), 6)     # 4√2
    5.656854
    """
    x, y = examples(x, y)
    best = max(np.mean(np.maximum(y, 0) ** 2), np.mean(np.maximum(-y, 0) ** 2))
    return float(4 * np.mean(y**2) / np.sqrt(best)) if best > 0 else 0.0


def sim_bn_complete(x: Any, y: Any) -> float:
    """4 inf ‖γ ⊙ W₂‖₁ = 8|c| for 2-MLP-Sim-BN on a complete training set with y = c x₁x₂ (Lemmas A.1 and A.3).

    This is the infimum: nets approach it as ‖W₁‖ → ∞, and attain it only if all tails are one point.

    >>> sim_bn_complete([[1, 1], [1, -1], [-1, 1], [-1, -1]], [1, -1, -1, 1])
    8.0
    """
    x, y = examples(x, y)
    tails(x)
    scale = y[0] * x[0, 0] * x[0, 1]
    if not np.array_equal(y, scale * x[:, 0] * x[:, 1]):
        check.refuse("y", "a multiple of x₁x₂", y[:8].tolist(), "Label the training set by its first two coordinates.")
    return float(8 * abs(scale))


def tails(x: Any) -> Floats:
    """S such that the rows of x are {−1, 1}² × S, each row once (Condition 1); any other x is refused.

    >>> tails([[1, 1, 5], [1, -1, 5], [-1, 1, 5], [-1, -1, 5]]).tolist()
    [[5.0]]
    """
    points = inputs(x, minimum_d=2)
    corners = [points[(points[:, 0] == a) & (points[:, 1] == b), 2:] for a in (1, -1) for b in (1, -1)]
    sets = [np.unique(corner, axis=0) for corner in corners]
    same = all(np.array_equal(s, sets[0]) and len(s) == len(c) for s, c in zip(sets, corners, strict=True))
    if not same or sum(map(len, corners)) != len(points):
        sizes = [len(corner) for corner in corners]
        rule = "complete: the same distinct tails x[2:] at all four corners (±1, ±1) of the first two coordinates"
        remedy = "Build it with steppe.data.complete."
        check.refuse("x", rule, f"{sizes} of {len(points)} rows at the four corners", remedy)
    return sets[0]


def sim_bn_norms(gamma: Any, W2: Any) -> float:
    """2(‖W₂‖² + ‖γ‖²), a lower bound of the trace at these parameters (Lemma A.3, corrected).

    >>> sim_bn_norms([1.0, 1.0], [1.0, -2.0])
    14.0
    """
    return float(2 * (np.sum(np.square(W2)) + np.sum(np.square(gamma))))


def logistic(bound: Callable[..., float], x: Any, y: Any, *args: Any, smoothing: float) -> float:
    """½ p(1 − p) bound(x, γ_p y): any bound above for the logistic loss with label smoothing p, y = ±1.

    At f = γ_p y the loss has curvature p(1 − p), and the square has 2 (Theorem A.2 and Lemma A.13, corrected).

    >>> round(logistic(two_layer_bias, np.ones((1, 30)), [1.0], smoothing=0.2), 4)     # 22.271 · 0.08 · ln 4
    2.4699
    """
    x, y = examples(x, y)
    return logistic_curvature(smoothing) / 2 * bound(x, logistic_target(y, smoothing), *args)


def logistic_target(y: Any, smoothing: float) -> Floats:
    """γ_p y with γ_p = ln((1 − p)/p) and y = ±1: the output that minimises the smoothed loss (Theorem A.2).

    ℓ(f, y) = (1 − p) log(1 + e^{−yf}) + p log(1 + e^{yf}); Definition A.2 prints it with p and 1 − p exchanged.

    >>> logistic_target([1.0, -1.0], 0.2).round(4).tolist()         # ± ln 4
    [1.3863, -1.3863]
    """
    labels = np.asarray(y, dtype=np.float64)
    if not np.isin(labels, (-1.0, 1.0)).all():
        check.refuse("y", "-1 or +1 for the logistic loss", np.unique(labels)[:5].tolist(), "Map the classes to ±1.")
    p = _probability(smoothing)
    return math.log((1 - p) / p) * labels


def logistic_curvature(smoothing: float) -> float:
    """∂²ℓ/∂f² = p(1 − p) at the minimum (Lemma A.13, which prints 1/(p(1 − p))).

    >>> round(logistic_curvature(0.2), 12)
    0.16
    """
    p = _probability(smoothing)
    return p * (1 - p)


def _probability(smoothing: float) -> float:
    p = check.number("smoothing", smoothing, above=0.0, remedy="Without smoothing the loss has no minimum.")
    if p >= 1:
        check.refuse("smoothing", "below 1", smoothing, "It is the probability that a label is flipped.")
    return p
