"""Sharpness-aware minimisation around any optimiser of PyTorch."""

import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, final

import torch

from steppe import check
from steppe._guard import guard

Tensors = list[torch.Tensor]
Closure = Callable[[], Any]


@final
class SAM(torch.optim.Optimizer):  # type: ignore[misc]
    """A step of `base` with the gradient at w + e, where g = ∇ℓ(w) and

        e = ρ g/‖g‖                                    SAM (Foret et al. 2021)
        e = ρ T²g/‖Tg‖,   T = diag(|w| + η)            ASAM, `adaptive=True` (Kwon et al. 2021, elementwise)

    The norm is over all parameters. g = 0, and under AMP an overflow of g, give no perturbation. In a loop there are
    three ways:

        sam.step(closure)                              the closure evaluates the loss and calls backward

        loss_of(batch).backward()                      two passes, each over as many micro-batches as you like
        sam.first_step()                               w ← w + e, gradients cleared
        loss_of(batch).backward()
        sam.step()                                     w ← w − e to the bit, then the step of `base`

        for part in parts:                             m-SAM: every part has a perturbation of its own,
            sam.accumulate(closure_of(part))           and the gradients add up
        sam.step()

    - **Groups.** `param_groups` and `state` are those of `base`: a scheduler can be built on either. A group can have
      its own "sam_rho" (0 leaves it out, of the norm too), "sam_adaptive" and "sam_eta".
    - **Batch statistics.** Buffers that the second pass changes are put back: they are updated once, at w. The modules
      are noticed in the first forward pass; `model` states them.
    - **AMP.** Scale the loss of both passes and call `scaler.step(sam)`; e does not depend on the scale, so the first
      gradient needs no `unscale_`. A skipped step returns to w as well.
    - **DDP.** Both gradients are averaged over the processes, and e is the same on all of them. With the first pass
      under `ddp.no_sync()` each process perturbs along its own gradient: m-SAM, and one exchange less. The parameters
      stay equal either way.
    - **Resuming.** `state_dict` is that of `base`, and enough for the same bits. Dropout draws anew in the second pass.

    >>> w = torch.nn.Parameter(torch.tensor([1.0]))
    >>> sam = SAM(torch.optim.SGD([w], lr=0.5), rho=1.0)
    >>> def closure():
    ...     loss = 0.5 * (w**2).sum()
    ...     loss.backward()
    ...     return loss
    >>> sam.step(closure).item(), w.tolist()                        # 1 − ½ · ∇ℓ(1 + 1)
    (0.5, [0.0])
    """

    # GradScaler then calls `step` after an overflow too, where w has to return, and leaves the unscaling to it.
    _step_supports_amp_scaling = True

    @guard
    def __init__(
        self,
        base: torch.optim.Optimizer,
        rho: float = 0.05,
        *,
        adaptive: bool = False,
        eta: float = 0.01,
        model: torch.nn.Module | None = None,
    ) -> None:
        if not isinstance(base, torch.optim.Optimizer):
            remedy = "Pass for example SAM(torch.optim.SGD(model.parameters(), lr=0.1), rho=0.05)."
            check.refuse("base", "an optimiser of torch, not its class or parameters", base, remedy)
        self.base = base
        self.rho = check.number("rho", rho, minimum=0.0, remedy="Pass for example rho=0.05.")
        self.eta = check.number("eta", eta, minimum=0.0, remedy="Pass for example eta=0.01.")
        self.adaptive = bool(adaptive)
        self._away: _Away | None = None
        self._ready = False
        # Schedulers and GradScaler ask for an Optimizer. Its __init__ would make groups and a state of its own; this
        # makes the hooks only.
        torch.optim.Optimizer.__setstate__(self, {})
        if not (model is None or isinstance(model, torch.nn.Module)):
            check.refuse("model", "a torch.nn.Module or None", model, "Leave it out: it is found in the first pass.")
        self._modules = _Modules(self._params(), model)
        for group in self.param_groups:
            self._settled(group)

    # Read from `base` each time: its load_state_dict replaces these objects.

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        groups: list[dict[str, Any]] = self.base.param_groups
        return groups

    @property
    def state(self) -> Any:
        return self.base.state

    @property
    def defaults(self) -> dict[str, Any]:
        defaults: dict[str, Any] = self.base.defaults
        return defaults

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        self.base.add_param_group(param_group)
        self._settled(self.param_groups[-1])

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.base.zero_grad(set_to_none)

    def state_dict(self) -> dict[str, Any]:
        self._home("state_dict")
        state: dict[str, Any] = self.base.state_dict()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._home("load_state_dict")
        self.base.load_state_dict(state_dict)
        self._ready = False

    def __getstate__(self) -> dict[str, Any]:
        self._home("a copy")
        return {name: value for name, value in self.__dict__.items() if name != "_modules"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        torch.optim.Optimizer.__setstate__(self, state)
        self._modules = _Modules(self._params(), None)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def first_step(self, zero_grad: bool = True) -> None:
        """w ← w + e, from the gradients of the first pass. They are cleared, or the second ones would add to them."""
        self._home("first_step")
        if all(p.grad is None for p in self._params()):
            remedy = "Call loss.backward() before; a closure has to call it too."
            raise check.ArgumentError(f"SAM needs a gradient, and no parameter has one. {remedy}")
        parts = [self._part(group) for group in self.param_groups]
        params = [p for part in parts for p in part.params]
        self._modules.close()
        self._away = _Away(params, self._modules.buffers())
        _ascend(parts)
        torch.clear_autocast_cache()  # it holds the weights at w in half precision
        if zero_grad:
            self.zero_grad()

    def second_step(self, zero_grad: bool = False) -> None:
        """`step()`, and the gradients cleared on request."""
        self.step()
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def accumulate(self, closure: Closure) -> Any:
        """Adds ∇ℓ(w + e) to the gradients, where ℓ is the loss of this closure and e its own perturbation; w stays.

        The closure is called twice. It may clear the gradients: what was accumulated before is kept aside.
        """
        self._home("accumulate")
        params = self._params()
        # Copies, because DDP may write the next gradient into the same memory.
        before = [None if p.grad is None else p.grad.clone() for p in params]
        self.zero_grad()
        with torch.enable_grad():
            loss = closure()
        self.first_step()
        try:
            with torch.enable_grad():
                closure()
        finally:
            self._return()
        for p, earlier in zip(params, before, strict=True):
            if earlier is not None:
                p.grad = earlier if p.grad is None else p.grad.add_(earlier)
        self._ready = True
        return loss

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self, closure: Closure | None = None) -> Any:
        """The step of `base` with the gradients at w + e; with a closure, both passes before it. Returns ℓ(w)."""
        loss = None
        if closure is not None:
            self._home("step with a closure")
            self.zero_grad()
            loss = self.accumulate(closure)
        elif self._away is not None:
            self._return()
        elif not self._ready:
            raise check.ArgumentError(
                "SAM needs the gradient at two points before a step. Call step(closure), or first_step() and another "
                "backward pass before step(); base.step() makes a step without SAM."
            )
        self._ready = False
        if self._unscaled():
            self.base.step()
        return loss

    def _unscaled(self) -> bool:
        """Divides the gradients by the scale that a GradScaler left here; False if they overflowed."""
        # GradScaler sets these two for the time of `step`.
        scale, overflow = (self.__dict__.get(name) for name in ("grad_scale", "found_inf"))
        if overflow is not None and float(overflow) > 0.0:
            return False
        if scale is not None:
            for p in self._params():
                if p.grad is not None:
                    p.grad.div_(scale.to(p.grad.device))
        return True

    def _params(self) -> Tensors:
        return [p for group in self.param_groups for p in group["params"]]

    def _settled(self, group: dict[str, Any]) -> None:
        """Sets what a group leaves open. The names have a prefix, because Adadelta has a rho of its own."""
        for name, value in (("sam_rho", self.rho), ("sam_adaptive", self.adaptive), ("sam_eta", self.eta)):
            group.setdefault(name, value)

    def _part(self, group: dict[str, Any]) -> "_Part":
        """The parameters of a group that are perturbed."""
        self._settled(group)  # a state_dict of the bare optimiser has no such entries
        rho = check.number("sam_rho", group["sam_rho"], minimum=0.0, remedy="Pass 0 to leave the group out.")
        params = [p for p in group["params"] if p.grad is not None] if rho else []
        return _Part(params, rho, float(group["sam_eta"]) if group["sam_adaptive"] else None)

    def _return(self) -> None:
        if self._away is not None:
            self._away.end()
            torch.clear_autocast_cache()
        self._away = None

    def _home(self, call: str) -> None:
        if self._away is not None:
            remedy = "Call step() after the second backward pass."
            raise check.ArgumentError(f"{call} came between first_step and step, where w is perturbed. {remedy}")


@dataclass(frozen=True, eq=False)
class _Part:
    """Parameters with their gradients and their radius; `eta` is None for SAM."""

    params: Tensors
    rho: float
    eta: float | None

    def directions(self) -> tuple[Tensors, Tensors | None]:
        """Tg and T; the gradients themselves and None for SAM."""
        gradients = [p.grad.to_dense() if p.grad.is_sparse else p.grad for p in self.params]
        if self.eta is None or not gradients:
            return gradients, None
        scales = torch._foreach_abs(self.params)
        torch._foreach_add_(scales, self.eta)
        return torch._foreach_mul(gradients, scales), scales


def _ascend(parts: list[_Part]) -> None:
    """w ← w + ρ T²g/‖Tg‖, with one norm over all parts."""
    found = [part.directions() for part in parts]
    every = [d for directions, _ in found for d in directions]
    size, scale = _norm(every, 2.0), 1.0
    if not _SMALL < size < 1 / _SMALL:
        # The squares underflow or overflow, unless all entries are divided by the largest. At zero nothing is left to
        # learn; GradScaler deals with an overflow; below the smallest normal number there is no reciprocal.
        largest = _norm(every, math.inf)
        narrow = torch.float64 if all(d.dtype == torch.float64 for d in every) else torch.float32
        if not torch.finfo(narrow).tiny < largest < math.inf:
            return
        scale = 1.0 / largest
        size = _norm(list(torch._foreach_mul(every, scale)), 2.0)
    for part, (directions, scales) in zip(parts, found, strict=True):
        if not directions:
            continue
        if scales is not None:
            torch._foreach_mul_(directions, scales)
        if scale != 1.0:
            directions = torch._foreach_mul(directions, scale)  # noqa: PLW2901
        torch._foreach_add_(part.params, directions, alpha=part.rho / size)


# Squares of 1e-15 are far from the smallest number of single precision.
_SMALL = 1e-15


def _norm(tensors: Tensors, order: float) -> float:
    if not tensors:
        return 0.0
    # Half precision has too few digits for a sum.
    dtype = reduce(torch.promote_types, (t.dtype for t in tensors), torch.float32)
    norms = torch._foreach_norm(tensors, order, dtype=dtype)
    # On the device first: one value is read back, not one for each tensor.
    return float(torch.linalg.vector_norm(torch.stack([n.to(norms[0].device) for n in norms]), order))


class _Modules:
    """The outermost modules that hold parameters of an optimiser, noticed when they first run.

    An optimiser does not know them. They are noticed in the first pass of the first step, since a hook that stays
    would be traced by torch.compile.
    """

    def __init__(self, params: Tensors, model: torch.nn.Module | None) -> None:
        self.found: list[torch.nn.Module] = [] if model is None else [model]
        self._left = {id(p) for p in params} if model is None else set()
        self._hook = None
        if self._left:
            # The hook must not keep an optimiser alive that is never used.
            this = weakref.ref(self)

            def before_forward(module: torch.nn.Module, _: Any) -> None:
                if not torch.compiler.is_compiling() and (modules := this()) is not None:
                    modules._notice(module)

            self._hook = torch.nn.modules.module.register_module_forward_pre_hook(before_forward)
            weakref.finalize(self, self._hook.remove)

    def _notice(self, module: torch.nn.Module) -> None:
        held = {id(p) for p in module.parameters()} & self._left
        if held:
            self.found.append(module)
            self._left -= held
        if not self._left:
            self.close()

    def close(self) -> None:
        if self._hook is not None:
            self._hook.remove()

    def buffers(self) -> list[tuple[torch.nn.Module, str, torch.Tensor]]:
        modules = {id(m): m for root in self.found for m in root.modules()}.values()
        return [(m, name, b) for m in modules if m.training for name, b in m.named_buffers(recurse=False)]


class _Away:
    """What returns the network to w: the parameters and buffers with their values."""

    def __init__(self, params: Tensors, buffers: list[tuple[torch.nn.Module, str, torch.Tensor]]) -> None:
        self._params, self._buffers = params, buffers
        self._values = [t.detach().clone() for t in (*params, *(b for _, _, b in buffers))]

    def end(self) -> None:
        if self._values:
            torch._foreach_copy_([*self._params, *(b for _, _, b in self._buffers)], self._values)
        for module, name, buffer in self._buffers:
            module._buffers[name] = buffer  # a module may have put another tensor in its place
