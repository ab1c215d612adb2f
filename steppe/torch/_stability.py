"""From which curvature on an optimiser is unstable on a quadratic, and the matrix whose curvature that is.

At the edge a step changes the sign of w along the leading direction. An optimiser divides the gradient by P and turns
the gradient s w of that direction, s an eigenvalue of P⁻¹H, into a step of k s w; so its edge is k s = 2.

| optimiser | P | edge of λ_max(P⁻¹H), 2/k |
| --- | --- | --- |
| gradient descent | I | 2/lr |
| momentum β (heavy ball) | I | 2(1 + β)/lr, with dampening d over (1 − d) |
| momentum β of Nesterov | I | 2(1 + β)/((1 + 2β) lr) |
| RMSProp, momentum β | √v + ε | 2(1 + β)/lr |
| Adam, AdamW | (1 − β₁ᵗ)(√(v/(1 − β₂ᵗ)) + ε) | (2 + 2β₁)/((1 − β₁) lr): 38/lr for β₁ = 0.9 |

L2 decay λ adds λI to H; the decoupled decay of AdamW replaces the 2 by 2 − lr λ. Sources: Cohen et al. 2021 (momentum),
Cohen et al. 2022 (Adam, RMSProp; their preconditioned sharpness). Two other conventions circulate: λ_max of the same
matrix without (1 − β₁ᵗ) and the correction of v, which differs early in training; and lr λ_max(P⁻¹H), with the edge
(2 + 2β₁)/(1 − β₁).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from steppe.torch._sam import SAM

Tensors = list[torch.Tensor]


@dataclass(frozen=True, eq=False)
class Stability:
    """The edge is where λ_max(S(H + decay)S) reaches `threshold`; `scales` are the entries of S, None if S = 1.

    `convention` says so in words. `radius` is the ρ of SAM.
    """

    convention: str
    threshold: float
    scales: Tensors | None = None
    decay: Tensors | None = None
    radius: float = 0.0

    def edge(self, gradient_norm: float) -> float:
        """The threshold at a gradient of this norm, on which only that of SAM depends."""
        if not self.radius or not math.isfinite(self.threshold):
            return self.threshold
        # The gradient of SAM along an eigenvector is that of the curvature λ(1 + ρλ/‖g‖) (Long and Bartlett 2024).
        ratio = gradient_norm / (2 * self.radius)
        return ratio * (math.sqrt(1 + 2 * self.threshold / ratio) - 1) if ratio > 0 else 0.0


@dataclass(frozen=True)
class _Group:
    """k, the L2 decay, and √P of each parameter as a function of its state."""

    k: float
    decay: float
    preconditioner: Callable[[dict[str, Any]], torch.Tensor] | None = None


def stability(optimizer: torch.optim.Optimizer, params: Tensors) -> Stability | None:
    """That of the last step for these parameters; None if no formula is known for the optimiser."""
    if isinstance(optimizer, SAM):
        return _of_sam(optimizer, params)
    rule = next((_RULES[kind] for kind in type(optimizer).__mro__ if kind in _RULES), None)
    if rule is None or any(group.get("maximize") for group in optimizer.param_groups):
        return None
    kind, convention = rule
    owner = {p: kind(group) for group in optimizer.param_groups for p in group["params"]}
    groups = [owner[p] for p in params]
    reference = next((g for g in groups if g.k > 0), groups[0])
    threshold = 2 / reference.k if reference.k > 0 else math.inf
    words = convention(optimizer.param_groups[0])
    if reference.preconditioner is None and len(set(groups)) == 1:
        return Stability(words, threshold - reference.decay)
    # Groups with another k are compared by the curvature that the first group would have to see.
    scales = [_scale(p, g, optimizer.state.get(p, {}), reference) for p, g in zip(params, groups, strict=True)]
    decay = [torch.full_like(p, g.decay) for p, g in zip(params, groups, strict=True)]
    return Stability(words, threshold, scales, decay if any(g.decay for g in groups) else None)


def _scale(p: torch.Tensor, group: _Group, state: dict[str, Any], reference: _Group) -> torch.Tensor:
    share = group.k / reference.k if reference.k > 0 else 1.0
    if group.preconditioner is None:
        return torch.full_like(p, math.sqrt(share))
    if not state:  # it has not had a gradient, and does not move
        return torch.zeros_like(p)
    scale: torch.Tensor = (share / group.preconditioner(state)).sqrt().to(p.dtype)
    return scale


def _of_sam(optimizer: SAM, params: Tensors) -> Stability | None:
    base = stability(optimizer.base, params)
    radii = {group["sam_rho"] for group in optimizer.param_groups}
    if base is None or base.scales is not None or len(radii) > 1:
        return None
    if any(group["sam_adaptive"] for group in optimizer.param_groups):
        return None
    words = f"{base.convention}, = s; under SAM at ‖g‖/(2ρ) (√(1 + 4ρs/‖g‖) − 1) (Long and Bartlett 2024)"
    return replace(base, convention=words, radius=radii.pop())


def _sgd(group: dict[str, Any]) -> _Group:
    lr, beta, decay = float(group["lr"]), group["momentum"], group["weight_decay"]
    kept = 1 - group["dampening"] if beta else 1.0
    return _Group(lr * ((1 + 2 * beta) if group["nesterov"] else kept) / (1 + beta), decay)


def _in_words_sgd(group: dict[str, Any]) -> str:
    beta = group["momentum"]
    if not beta:
        return "gradient descent: λ_max(H), edge at 2/lr"
    if group["nesterov"]:
        return f"Nesterov's momentum: λ_max(H), edge at 2(1 + β)/((1 + 2β) lr) with β = {beta:g} (Cohen et al. 2021)"
    return f"momentum: λ_max(H), edge at 2(1 + β)/((1 − dampening) lr) with β = {beta:g} (Cohen et al. 2021)"


def _rmsprop(group: dict[str, Any]) -> _Group:
    def preconditioner(state: dict[str, Any]) -> torch.Tensor:
        v = state["square_avg"]
        v = v - state["grad_avg"] ** 2 if group["centered"] else v
        root: torch.Tensor = v.sqrt() + group["eps"]
        return root

    return _Group(float(group["lr"]) / (1 + group["momentum"]), group["weight_decay"], preconditioner)


def _in_words_rmsprop(group: dict[str, Any]) -> str:
    return f"RMSProp: λ_max(P⁻¹H), P = √v + ε, edge at 2(1 + β)/lr with β = {group['momentum']:g} (Cohen et al. 2022)"


def _adam(group: dict[str, Any]) -> _Group:
    b1, b2 = (float(b) for b in group["betas"])
    lr, decay = float(group["lr"]), group["weight_decay"]
    decoupled = group.get("decoupled_weight_decay", False)

    def preconditioner(state: dict[str, Any]) -> torch.Tensor:
        t = float(state["step"])
        v = state["max_exp_avg_sq"] if group["amsgrad"] else state["exp_avg_sq"]
        root: torch.Tensor = (1 - b1**t) * ((v / (1 - b2**t)).sqrt() + group["eps"])
        return root

    k = lr * (1 - b1) / (1 + b1) * 2 / (2 - (lr * decay if decoupled else 0.0))
    return _Group(k, 0.0 if decoupled else decay, preconditioner)


def _in_words_adam(group: dict[str, Any]) -> str:
    b1 = float(group["betas"][0])
    return (
        "Adam: λ_max(P⁻¹H), P = (1 − β₁ᵗ)(√(v/(1 − β₂ᵗ)) + ε), edge at (2 + 2β₁)/((1 − β₁) lr) = "
        f"{(2 + 2 * b1) / (1 - b1):.3g}/lr (Cohen et al. 2022)"
    )


def _adamw(group: dict[str, Any]) -> _Group:
    return _adam(group | {"decoupled_weight_decay": True})


_RULES: dict[type, tuple[Callable[[dict[str, Any]], _Group], Callable[[dict[str, Any]], str]]] = {
    torch.optim.SGD: (_sgd, _in_words_sgd),
    torch.optim.RMSprop: (_rmsprop, _in_words_rmsprop),
    torch.optim.Adam: (_adam, _in_words_adam),
    torch.optim.AdamW: (_adamw, _in_words_adam),
}
