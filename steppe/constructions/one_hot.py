"""Networks in which each of k separated points excites one neuron a layer, as flat as any interpolator can be."""

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats, Params
from steppe.constructions.separating import Separation


def deep(separation: Separation, norm: Floats, y: Floats, depth: int, *, fraction: float = 0.5) -> Params:
    """Depth D: r = (‖x′‖/|y|)^{1/D}; activations |y| r^{D−1}, …, |y| r, then W_D = sign(y)/r (appendix A.3.1).

    Where y = 0 the neuron is silent: active, it would cost ‖a‖² and the bound is 0. Between hidden layers a neuron
    inhibits all others, W_j = diag(1/r)(2I − 11ᵀ): with 0 there, as printed, the others would sit on relu's kink.
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
    """2-MLP-Sim-LN: normalised (a = 2ε, W₂ = y) where ‖x′‖|y| > ε/2, else a = √(ε‖x′‖|y|), W₂ = εy/a, 0 for y = 0.

    The proof of Theorem 5.1 changes over at ε: between ε/2 and ε its neuron costs (2/ε)‖x′‖|y| > 1.
    """
    eps = check.number("eps", eps, above=0.0)
    linear = norm * np.abs(y) <= eps / 2
    height = np.where(linear, np.sqrt(eps * norm * np.abs(y)), 2 * eps)
    params = first_layer(separation, height, fraction)
    params["W2"] = np.where(linear, eps * y / np.where(height > 0, height, 1.0), y)
    return params


def first_layer(separation: Separation, height: Floats, fraction: float = 0.5) -> Params:
    """relu(W₁x + b₁) = height at its own point, falling to 0 within `fraction` of the gap to the others."""
    fraction = check.number("fraction", fraction, above=0.0)
    if fraction >= 1:
        check.refuse("fraction", "below 1", fraction, "At 1 the nearest other point sits on relu's kink.")
    epsilon = fraction * separation.gaps
    slope = height / epsilon
    # A silent neuron has bias −1: strictly inactive everywhere, away from the kink.
    bias = np.where(height > 0, slope * (epsilon - separation.offsets), -1.0)
    return {"W1": slope[:, None] * separation.vectors, "b1": bias}
