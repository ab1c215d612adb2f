"""The four-neuron 2-MLP-No-Bias that computes xor (appendix A.2.4)."""

import numpy as np

from steppe import check
from steppe.constructions._examples import Params


def no_bias_xor(d: int, *, epsilon: float = 0.5, scale: float = 1.0) -> Params:
    """Rows s(±(1 + ε), ±(1 − ε), 0, …), W₂ = ±1/(s(2 − 2ε)): f(x) = x₁x₂ on {−1, 1}^d, for 0 < ε < 1.

    Its Σ ‖W₁ⱼ‖|W₂ⱼ| = 2√2 √(1 + ε²)/(1 − ε) does not grow with d, so P_xor meets Condition 2. `scale` is s, 1 in
    the paper; over all of P_xor tr ∇²L = d/(s(1 − ε))² + 8s²(1 + ε²), least where the two are equal.

    >>> no_bias_xor(2)["W1"].tolist(), no_bias_xor(2)["W2"].tolist()
    ([[1.5, 0.5], [1.5, -0.5], [-1.5, 0.5], [-1.5, -0.5]], [1.0, -1.0, -1.0, 1.0])
    """
    d = check.integer("d", d, minimum=2, remedy="The label x₁x₂ needs two coordinates.")
    scale = check.number("scale", scale, above=0.0)
    epsilon = check.number("epsilon", epsilon, above=0.0, remedy="At 0 inputs sit on relu's kink.")
    if epsilon >= 1:
        check.refuse("epsilon", "below 1", epsilon, "At 1 the second coordinate is lost.")
    signs = np.array([(1, 1), (1, -1), (-1, 1), (-1, -1)], dtype=float)
    W1 = np.zeros((4, d))
    W1[:, :2] = scale * signs * (1 + epsilon, 1 - epsilon)
    return {"W1": W1, "W2": signs.prod(axis=1) / (scale * (2 - 2 * epsilon))}
