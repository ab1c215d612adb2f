"""The flattest implementation of a one-dimensional ReLU net: a convex problem in the log-scales, certified."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from steppe import check
from steppe.examples import Floats, Params, inputs
from steppe.flattening import OUTSIDE, Flattest, Rescaling, flattest

# The flattest implementation of a one-hidden-layer ReLU net (mulayoff2021, supplement XI), any inputs and outputs.


@dataclass(frozen=True, eq=False)
class Implementation:
    """The net whose λ_max(∇²L) is least among its rescalings: L = (1/2n) Σ ‖f − y‖² with every yⱼ fitted.

    `beta` multiplies (W₁, b₁) row by row and divides W₂; `value`, `lower`, `gap` are those of `Flattest`.
    """

    params: Params
    beta: Floats
    certificate: Flattest
    detached: tuple[int, ...]

    @property
    def value(self) -> float:
        return self.certificate.value

    @property
    def lower(self) -> float:
        return self.certificate.lower

    @property
    def gap(self) -> float:
        return self.certificate.gap


def flattest_implementation(params: Mapping[str, Any], x: Any, *, rtol: float = 1e-8) -> Implementation:
    """min over β of λ_max(∇²L) of the net with (β W₁, β b₁, W₂/β), certified.

    A neuron that no training point activates, or that has W₂ = 0, plays no part (`detached`, β = 1): the second kind
    can be switched off by β → 0, and counts as if it were.

    >>> net = {"W1": [[1.0]], "b1": [0.0], "W2": [9.0], "b2": 0.0}
    >>> best = flattest_implementation(net, [[1.0]])               # 1 + β² + 2·81/β², least at β² = 9√2
    >>> round(best.value, 6), round(best.beta[0] ** 4)
    (26.455844, 162)
    """
    net, points = one_hidden(params), inputs(x)
    form, attached = rescaling(net, points)
    best = flattest(form, rtol=rtol)
    t = np.zeros(len(net["b1"]))
    t[attached] = best.t
    beta = np.exp(t)
    detached = tuple(np.setdiff1d(np.arange(len(t)), attached).tolist())
    return Implementation(rescaled(net, beta), beta, best, detached)


def rescaling(net: Params, x: Floats) -> tuple[Rescaling, Any]:
    """M(t) = JᵀJ/n over all rescalings of the neurons that matter, and which they are.

    Its rows are all outputs of all examples; its eigenvalues those of ∇²L at an interpolator.
    """
    h = x @ net["W1"].T + net["b1"]
    active, hidden = (h > 0).astype(float), np.maximum(h, 0.0)
    extended, W2 = np.column_stack([x, np.ones(len(x))]), np.atleast_2d(net["W2"])
    root, outputs = np.sqrt(len(x)), np.eye(len(W2))
    attached = np.flatnonzero(active.any(axis=0) & (W2 != 0).any(axis=0))
    terms: list[tuple[Floats, int, int]] = []
    for unit, i in enumerate(attached):
        # ∂f_o(xⱼ)/∂(W₁ᵢ, b₁ᵢ) = W₂ₒᵢ 1[h > 0] x′ⱼ and ∂f_o(xⱼ)/∂W₂ₚᵢ = δₒₚ relu(h), rows (o, j).
        terms.append((np.kron(W2[:, i : i + 1], active[:, i : i + 1] * extended) / root, OUTSIDE, unit))
        terms.append((np.kron(outputs, hidden[:, i : i + 1]) / root, unit, OUTSIDE))
    terms.append((np.kron(outputs, np.ones((len(x), 1))) / root, OUTSIDE, OUTSIDE))
    return Rescaling.of(terms, len(attached)), attached


def rescaled(net: Params, beta: Any) -> Params:
    """(β W₁, β b₁, W₂/β, b₂): the same function."""
    beta = np.asarray(beta, dtype=float)
    if beta.shape != net["b1"].shape or not (np.isfinite(beta) & (beta > 0)).all():
        check.refuse("beta", f"{len(net['b1'])} numbers > 0, one a neuron", beta, "Pass one factor for each neuron.")
    return {"W1": beta[:, None] * net["W1"], "b1": beta * net["b1"], "W2": net["W2"] / beta, "b2": net["b2"]}


def one_hidden(params: Mapping[str, Any]) -> Params:
    """Parameters of `OneHidden` as float64, refused where they are not."""
    try:
        net = {name: np.asarray(params[name], dtype=float) for name in ("W1", "b1", "W2", "b2")}
    except (KeyError, TypeError, ValueError):
        check.refuse("params", "a dict of W1, b1, W2 and b2", params, "Pass the parameters of a OneHidden.")
    m = len(net["b1"]) if net["b1"].ndim == 1 else -1
    shapes = {name: a.shape for name, a in net.items()}
    fits = net["W1"].ndim == 2 and len(net["W1"]) == m and net["W2"].ndim in (1, 2)
    if not fits or net["W2"].shape != (*net["b2"].shape, m):
        rule = "W1 (m, d), b1 (m,), W2 (m,) with b2 (), or W2 (o, m) with b2 (o,)"
        check.refuse("params", rule, shapes, "Pass the parameters of a OneHidden.")
    for name, a in net.items():
        check.finite(f"params[{name!r}]", a)
    return net


# Gradient descent on β, the paper's own way to the flattest implementation; it knows no bound.


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
