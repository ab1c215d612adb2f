"""The edge of stability of an optimiser: the curvature at which its step stops shrinking the error, in one convention.

On a quadratic, gradient descent with step η shrinks every mode while ηλ/2 < 1. Each optimiser has such a ratio:

| optimiser | ratio, 1 at the edge |
| --- | --- |
| gradient descent | η λ/2 |
| heavy ball, momentum β | η λ/(2(1 + β)) |
| Nesterov, momentum β | η λ(1 + 2β)/(2(1 + β)) |
| Adam, frozen preconditioner P = √ν̂ + ε | η (1 − β₁) λ(P^{−½}HP^{−½})/(2(1 + β₁)) |

λ is λ_max(∇²L + weight decay). Cohen et al. 2021, Eq. 1 and appendix B; Cohen et al. 2022, Eq. 2: 38/η at β₁ = 0.9.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, final

import numpy as np

from steppe import check


@final
@dataclass(frozen=True)
class Adam:
    """Adam at a moment of training: `nu` is the bias-corrected second moment ν̂ of every parameter, flat or as pytree.

    ν̂ = ν/(1 − β₂ᵗ). The weight decay is that of the gradient; that of AdamW is left out, since its ratio, half of the
    learning rate times the decay, is small beside 1.
    """

    lr: float
    nu: Any
    beta1: float = 0.9
    eps: float = 1e-8
    weight_decay: float = 0.0


@dataclass(frozen=True, eq=False)
class Edge:
    """`factor` · λ_max(P^{−½}(∇²L + weight_decay I)P^{−½}) is 1 at the edge; `root` is P^{½}, None for P = I. `lr` is
    the learning rate if 2/η is the limit of λ_max(∇²L), for figures."""

    factor: float
    text: str
    weight_decay: float = 0.0
    root: np.ndarray | None = None
    lr: float | None = None


def edge_of(optimizer: Any, vector: Any, named: Mapping[str, Any] | None = None) -> Edge:
    """The edge of one of steppe.dynamics' GD and HeavyBall, of an `Adam` of this room, or of a torch optimiser.

    `vector` maps what an `Adam` holds to a flat vector; `named` are the parameters of a torch module by name, needed
    for the state of a torch Adam.

    >>> from steppe.dynamics import GD, HeavyBall
    >>> edge_of(GD(0.1), None).factor, round(edge_of(HeavyBall(0.1, 0.9), None).factor, 6)
    (0.05, 0.026316)
    """
    from steppe.dynamics import GD, HeavyBall

    if isinstance(optimizer, Edge):
        return optimizer
    if type(optimizer).__module__.partition(".")[0] == "torch":
        return _of_torch(optimizer, vector, named)
    if isinstance(optimizer, GD):
        return sgd(float(optimizer.lr), 0.0, weight_decay=float(optimizer.weight_decay))
    if isinstance(optimizer, HeavyBall):
        return sgd(float(optimizer.lr), float(optimizer.momentum))
    if isinstance(optimizer, Adam):
        return _adam(optimizer, vector(optimizer.nu))
    return _refuse(optimizer)


def _refuse(optimizer: Any) -> NoReturn:
    remedy = "Pass steppe.dynamics.GD(lr), HeavyBall(lr, momentum), steppe.auditing.Adam(lr, nu), SGD or Adam of torch."
    check.refuse("optimizer", "one whose edge is known", type(optimizer).__name__, remedy)


def _of_torch(optimizer: Any, vector: Any, named: Mapping[str, Any] | None) -> Edge:
    """Of torch.optim.SGD, Adam or AdamW, from its options and its state."""
    kind, groups = type(optimizer).__name__, optimizer.param_groups
    option = groups[0]
    if kind not in ("SGD", "Adam", "AdamW"):
        _refuse(optimizer)
    shared = ("lr", "momentum", "dampening", "nesterov", "weight_decay", "betas", "eps")
    if any(group.get(name) != option.get(name) for group in groups for name in shared):
        remedy = "Pass the one that matters: steppe.dynamics.GD(lr), or steppe.auditing.Adam(lr, nu)."
        check.refuse("optimizer", "one with the same options in all parameter groups", kind, remedy)
    if kind == "SGD":
        return sgd(
            float(option["lr"]), float(option["momentum"]), nesterov=option["nesterov"],
            dampening=float(option["dampening"]), weight_decay=float(option["weight_decay"]),
        )  # fmt: skip
    if named is None:
        remedy = "Call audit(model, data, loss, optimizer=optimizer), or pass steppe.auditing.Adam(lr, nu)."
        check.refuse("optimizer", "given with the module whose parameters it has", kind, remedy)
    beta1, beta2 = option["betas"]
    nu = {}
    for name, parameter in named.items():
        state = optimizer.state.get(parameter)
        if state:
            nu[name] = state["exp_avg_sq"] / (1 - beta2 ** float(state["step"]))
    decay = 0.0 if kind == "AdamW" or option.get("decoupled_weight_decay") else float(option["weight_decay"])
    if not nu:
        check.refuse("optimizer", "one that has made steps", kind, "Load its state_dict, or train first.")
    return _adam(Adam(float(option["lr"]), nu, float(beta1), float(option["eps"]), decay), vector(nu))


def sgd(
    lr: float, momentum: float, *, nesterov: bool = False, dampening: float = 0.0, weight_decay: float = 0.0
) -> Edge:
    """Of gradient descent with momentum as torch.optim.SGD has it."""
    lr = check.number("lr", lr, above=0.0)
    if not 0.0 <= check.number("momentum", momentum) < 1.0:
        check.refuse("momentum", "in [0, 1)", momentum, "Pass for instance 0.9.")
    decay = f", λ of ∇²L + {weight_decay:g} I" if weight_decay else ""
    if momentum == 0.0:
        text = f"gradient descent: η λ/2 with η = {lr:g}{decay}; 1 is the edge, λ = 2/η"
        return Edge(lr / 2, text, weight_decay, lr=None if weight_decay else lr)
    if nesterov:
        text = f"Nesterov: η λ (1 + 2β)/(2(1 + β)) with η = {lr:g}, β = {momentum:g}{decay}; 1 is the edge"
        return Edge(lr * (1 + 2 * momentum) / (2 * (1 + momentum)), text, weight_decay)
    text = f"heavy ball: η λ/(2(1 + β)) with η = {lr:g}, β = {momentum:g}{decay}; 1 is the edge"
    return Edge(lr * (1 - dampening) / (2 * (1 + momentum)), text, weight_decay)


def _adam(optimizer: Adam, moments: Any) -> Edge:
    nu = np.asarray(moments, dtype=float)
    lr, beta = check.number("lr", optimizer.lr, above=0.0), optimizer.beta1
    check.finite("nu", nu)
    if (nu < 0).any():
        check.refuse("nu", "second moments ≥ 0", float(nu.min()), "Pass ν̂, not the first moment.")
    preconditioner = np.sqrt(nu) + optimizer.eps
    if (preconditioner <= 0).any():
        check.refuse("eps", "> 0 where a second moment is 0", optimizer.eps, "Pass the eps of the optimiser.")
    text = (
        f"Adam: η (1 − β₁) λ/(2(1 + β₁)) with η = {lr:g}, β₁ = {beta:g}, λ = λ_max(P^−½ ∇²L P^−½), P = √ν̂ + ε with ν̂ "
        f"bias-corrected and held fixed; 1 is the edge, λ = {2 * (1 + beta) / (1 - beta):.4g}/η"
    )
    return Edge(lr * (1 - beta) / (2 * (1 + beta)), text, optimizer.weight_decay, np.sqrt(preconditioner))
