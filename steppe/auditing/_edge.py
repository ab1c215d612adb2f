"""The edge of stability of an optimiser: the curvature from which on its step makes the error grow, in one convention.

| optimiser | edge of λ |
| --- | --- |
| gradient descent | 2/η |
| heavy ball, momentum β | 2(1 + β)/η |
| Adam, frozen preconditioner P = √ν̂ + ε | 2(1 + β₁)/((1 − β₁) η) for λ_max(P^{−½}∇²L P^{−½}): 38/η at β₁ = 0.9 |

λ is λ_max(∇²L + weight decay). An audit shows the ratio of λ to its edge: for gradient descent ηλ/2. The optimisers of
PyTorch have theirs in `steppe.torch`. Cohen et al. 2021 (momentum) and 2022 (Adam).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

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
    """λ_max(S(∇²L + decay)S) is at the edge when it is limit(‖∇L‖); `scales` are the entries of S, None if S = 1.

    `text` says so in words. `lr` is the learning rate if 2/η is the limit of λ_max(∇²L), for figures.
    """

    limit: Callable[[float], float]
    text: str
    decay: float | NDArray[Any] = 0.0
    scales: NDArray[Any] | None = None
    lr: float | None = None


def check_optimizer(optimizer: Any) -> None:
    """Refuses what is no optimiser of a kind that `edge_of` knows, or of PyTorch."""
    from steppe.dynamics import GD, HeavyBall

    if optimizer is not None and not isinstance(optimizer, GD | HeavyBall | Adam) and not _is_of_torch(optimizer):
        _refuse(optimizer)


def _is_of_torch(optimizer: Any) -> bool:
    """Asked without importing torch."""
    return any(base.__module__.startswith("torch.optim") for base in type(optimizer).__mro__)


def edge_of(optimizer: Any, vector: Callable[[Any], Any], parameters: Mapping[str, Any] | None = None) -> Edge:
    """The edge of GD or HeavyBall of steppe.dynamics, of an `Adam` of this room, or of an optimiser of PyTorch.

    `vector` maps a pytree of parameters to a flat vector; `parameters` are those of a torch module by name, in the
    order of that vector.

    >>> from steppe.dynamics import GD, HeavyBall
    >>> edge_of(GD(0.1), np.asarray).limit(0.0), round(edge_of(HeavyBall(0.1, 0.9), np.asarray).limit(0.0), 6)
    (20.0, 38.0)
    """
    from steppe.dynamics import GD, HeavyBall

    if _is_of_torch(optimizer):
        return _of_torch(optimizer, vector, parameters)
    if isinstance(optimizer, GD):
        lr, decay = check.number("lr", float(optimizer.lr), above=0.0), float(optimizer.weight_decay)
        more = f", λ of ∇²L + {decay:g} I" if decay else ""
        text = f"gradient descent: λ_max(∇²L), edge at 2/η with η = {lr:g}{more}"
        return Edge(lambda _: 2 / lr, text, decay, lr=None if decay else lr)
    if isinstance(optimizer, HeavyBall):
        lr, beta = check.number("lr", float(optimizer.lr), above=0.0), float(optimizer.momentum)
        text = f"heavy ball: λ_max(∇²L), edge at 2(1 + β)/η with η = {lr:g}, β = {beta:g}"
        return Edge(lambda _: 2 * (1 + beta) / lr, text)
    if isinstance(optimizer, Adam):
        return _adam(optimizer, np.asarray(vector(optimizer.nu), dtype=float))
    return _refuse(optimizer)


def _adam(optimizer: Adam, nu: NDArray[Any]) -> Edge:
    lr, beta = check.number("lr", optimizer.lr, above=0.0), optimizer.beta1
    check.finite("nu", nu)
    if (nu < 0).any():
        check.refuse("nu", "second moments ≥ 0", float(nu.min()), "Pass ν̂, not the first moment.")
    preconditioner = np.sqrt(nu) + optimizer.eps
    if (preconditioner <= 0).any():
        check.refuse("eps", "> 0 where a second moment is 0", optimizer.eps, "Pass the eps of the optimiser.")
    edge = 2 * (1 + beta) / (1 - beta)
    text = (
        f"Adam: λ_max(P^−½ ∇²L P^−½), P = √ν̂ + ε with ν̂ bias-corrected and held fixed, edge at "
        f"2(1 + β₁)/((1 − β₁) η) = {edge:.4g}/η with η = {lr:g}, β₁ = {beta:g}"
    )
    return Edge(lambda _: edge / lr, text, optimizer.weight_decay, 1 / np.sqrt(preconditioner))


def _of_torch(optimizer: Any, vector: Callable[[Any], Any], parameters: Mapping[str, Any] | None) -> Edge:
    from steppe.torch._stability import stability

    known = parameters or {str(k): p for k, p in enumerate(p for g in optimizer.param_groups for p in g["params"])}
    owned = {id(p) for group in optimizer.param_groups for p in group["params"]}
    if any(id(p) not in owned for p in known.values()):
        remedy = "Pass the optimiser of this model, or freeze what it does not train."
        check.refuse("optimizer", "one of all parameters that are audited", type(optimizer).__name__, remedy)
    found = stability(optimizer, list(known.values()))
    if found is None:
        _refuse(optimizer)
    if found.scales is None:
        option = optimizer.param_groups[0]
        plain = "momentum" in option and not (option["momentum"] or option["weight_decay"] or found.radius)
        # Its threshold is that of λ_max(∇²L) alone: L2 decay is taken off.
        return Edge(found.edge, found.convention, lr=float(option["lr"]) if plain else None)
    if parameters is None:
        remedy = "Call audit(model, data, loss, optimizer=optimizer), or pass steppe.auditing.Adam(lr, nu)."
        check.refuse("optimizer", "given with the module whose parameters it has", type(optimizer).__name__, remedy)
    if not any(optimizer.state.get(p) for p in known.values()) and any(not bool(s.any()) for s in found.scales):
        remedy = "Load its state_dict, or train first."
        check.refuse("optimizer", "one that has made steps", type(optimizer).__name__, remedy)
    scales, decay = (
        None if parts is None else np.asarray(vector(dict(zip(known, parts, strict=True))), dtype=float)
        for parts in (found.scales, found.decay)
    )
    return Edge(found.edge, found.convention, 0.0 if decay is None else decay, scales)


def _refuse(optimizer: Any) -> NoReturn:
    remedy = (
        "Pass steppe.dynamics.GD(lr), HeavyBall(lr, momentum), steppe.auditing.Adam(lr, nu), or SGD or Adam of torch."
    )
    check.refuse("optimizer", "one whose edge is known", type(optimizer).__name__, remedy)
