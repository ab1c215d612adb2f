"""Gradient descent on β, the paper's own way to the flattest implementation; it knows no bound."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from steppe import check
from steppe.constructions._examples import Floats, inputs
from steppe.constructions.flattest.one_hidden import one_hidden, rescaling
from steppe.linalg.rescaling import Rescaling


def descent_on_beta(params: Mapping[str, Any], x: Any, *, lr: float = 1e-3, steps: int = 2_000) -> tuple[float, Floats]:
    """(least λ_max met, its β): β ← β − η ∇λ_max from β = 1, with the gradient of the top eigenvector.

    The paper says only "using GD". Here η starts at `lr`, grows by a fifth after a step that went down and halves,
    without a move, where it would go up. λ_max has kinks where two eigenvalues meet: only `flattest_implementation`
    knows how far from the minimum this ended.
    """
    lr = check.number("lr", lr, above=0.0)
    net = one_hidden(params)
    form, attached = rescaling(net, inputs(x))
    beta = np.ones(form.units)
    least, slope = _slope(form, beta)
    for _ in range(check.integer("steps", steps, minimum=1)):
        moved = beta - lr * slope
        if (moved > 0).all() and (trial := _slope(form, moved))[0] < least:
            beta, (least, slope), lr = moved, trial, 1.2 * lr
        else:
            lr /= 2
    whole = np.ones(len(net["b1"]))
    whole[attached] = beta
    return least, whole


def _slope(form: Rescaling, beta: Floats) -> tuple[float, Floats]:
    """λ_max and its gradient in β."""
    t = np.log(beta)
    m, V = np.linalg.eigh(form.gram(t))
    flows = form.weights(np.outer(V[:, -1], V[:, -1])) * form.scales(t)
    return float(m[-1]), -2 * (form.exponents.T @ flows) / beta
