"""The flattest implementation of a one-hidden-layer ReLU net (supplement XI): convex in log β, and certified."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from steppe import check
from steppe.flattening import OUTSIDE, Flattest, Rescaling, flattest
from steppe.training_set import Floats, Params, inputs


@dataclass(frozen=True, eq=False)
class Implementation:
    """The rescaling of a net with the least λ_max(∇²L), where L = (1/2n) Σ ‖f − y‖² and f interpolates.

    `beta` multiplies the rows of (W₁, b₁) and divides the columns of W₂. `value`, `lower` and `gap` are those of
    `certificate`. The neurons in `detached` play no part and keep β = 1.
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

    A neuron that no training point activates, or that has W₂ = 0, is detached. With W₂ = 0, β → 0 switches the neuron
    off at no cost, so it counts as switched off.

    >>> net = {"W1": [[1.0]], "b1": [0.0], "W2": [9.0], "b2": 0.0}
    >>> best = flattest_implementation(net, [[1.0]])               # 1 + β² + 2·81/β², least at β² = 9√2
    >>> round(best.value, 6), round(best.beta[0] ** 4)
    (26.455844, 162)
    """
    net = one_hidden(params)
    form, attached = rescaling(net, x)
    best = flattest(form, rtol=rtol)
    t = np.zeros(len(net["b1"]))
    t[attached] = best.t
    beta = np.exp(t)
    detached = tuple(np.setdiff1d(np.arange(len(t)), attached).tolist())
    return Implementation(rescaled(net, beta), beta, best, detached)


def rescaling(params: Mapping[str, Any], x: Any) -> tuple[Rescaling, Any]:
    """(M(t) = J Jᵀ/n for β = eᵗ over the attached neurons, their indices).

    A row of M is one output of one example. At an interpolator the eigenvalues of M are those of ∇²L.
    """
    net, x = one_hidden(params), inputs(x)
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
    """(β W₁, β b₁, W₂/β, b₂), which computes the same function."""
    beta = np.asarray(beta, dtype=float)
    if beta.shape != net["b1"].shape or not (np.isfinite(beta) & (beta > 0)).all():
        check.refuse(
            "beta", f"{len(net['b1'])} numbers > 0, one for each neuron", beta, "Pass one factor for each neuron."
        )
    return {"W1": beta[:, None] * net["W1"], "b1": beta * net["b1"], "W2": net["W2"] / beta, "b2": net["b2"]}


def one_hidden(params: Mapping[str, Any]) -> Params:
    """The parameters of a `OneHidden` as float64; refuses anything else."""
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


def descent_on_beta(params: Mapping[str, Any], x: Any, *, lr: float = 1e-3, steps: int = 2_000) -> tuple[float, Floats]:
    """(least λ_max found, its β) by β ← β − η ∇λ_max from β = 1, with the gradient of the top eigenvector.

    This is the paper's own method, of which it only says "using GD". Here η starts at `lr` and grows by a fifth after a
    step that decreases λ_max; a step that would not is left out, and η is halved. λ_max has kinks where two eigenvalues
    meet, and descent gives no bound: only `flattest_implementation` knows the distance to the minimum.
    """
    lr = check.number("lr", lr, above=0.0)
    net = one_hidden(params)
    form, attached = rescaling(net, x)
    beta = np.ones(form.units)
    least, slope = _slope(form, beta)
    for _ in range(check.integer("steps", steps, minimum=1)):
        moved = beta - lr * slope
        if (moved > 0).all() and (trial := _slope(form, moved))[0] < least:
            beta, (least, slope), lr = moved, trial, 1.2 * lr
        else:
            lr /= 2
    full = np.ones(len(net["b1"]))
    full[attached] = beta
    return least, full


def _slope(form: Rescaling, beta: Floats) -> tuple[float, Floats]:
    """λ_max and its gradient in β."""
    t = np.log(beta)
    m, V = np.linalg.eigh(form.gram(t))
    flows = form.weights(np.outer(V[:, -1], V[:, -1])) * form.scales(t)
    return float(m[-1]), -2 * (form.exponents.T @ flows) / beta
