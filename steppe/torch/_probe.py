"""The loss of one batch near the parameters of a module, which stays as it is: value, gradient, Hessian products."""

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, final

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from steppe import check

Tensors = list[torch.Tensor]
# The loss of (outputs, targets), or of (outputs, batch) for a dictionary; None: the model returns it as `.loss`.
Loss = Callable[[Any, Any], torch.Tensor] | None

_BATCH = "Pass (inputs, targets), a dictionary of the model's arguments, or a DataLoader of them."


@final
class Probe:
    """L at given values of `params`, some of the parameters of `model`, on a batch.

    Nothing of the model changes: parameters and buffers are replaced for the call, gradients are not accumulated, and
    the random numbers are those of a fixed seed, so that L is one function. Dropout layers are off, all else runs in
    the mode that it is in.
    """

    def __init__(self, model: torch.nn.Module, params: Mapping[str, torch.Tensor], batch: Any, loss: Loss) -> None:
        self._model, self._names, self._loss = model, list(params), loss
        first = next(iter(params.values()))
        self.device, self.dtype, self.shapes = first.device, first.dtype, [p.shape for p in params.values()]
        self._inputs, self._options, self._targets = _parts(_moved(batch, self.device))

    def at(self, w: Tensors) -> "Point":
        """The loss and its gradient at w, with the graph for products."""
        w = [v.detach().clone().requires_grad_() for v in w]
        buffers = {name: b.detach().clone() for name, b in self._model.named_buffers()}
        with _undisturbed(self._model, self.device):
            replaced = dict(zip(self._names, w, strict=True)) | buffers
            outputs = torch.func.functional_call(self._model, replaced, self._inputs, self._options)
            value = outputs.loss if self._loss is None else self._loss(outputs, self._targets)
            if not (isinstance(value, torch.Tensor) and value.numel() == 1):
                check.refuse("loss", "a function that returns one number", value, "Use reduction='mean'.")
            if not value.requires_grad:
                remedy = "Do not detach the outputs, and do not compute the loss under no_grad."
                check.refuse("loss", "a differentiable function of the parameters", value, remedy)
            gradient = torch.autograd.grad(value.sum(), w, create_graph=True, allow_unused=True)
        return Point(float(value.detach()), w, [g if g is not None else None for g in gradient])


@final
class Point:
    """The loss at w, its gradient, and products with the Hessian by double backward, with the graph kept."""

    def __init__(self, loss: float, w: Tensors, gradient: Sequence[torch.Tensor | None]) -> None:
        self.loss, self._w = loss, w
        self.gradient = [torch.zeros_like(v) if g is None else g.detach() for g, v in zip(gradient, w, strict=True)]
        self._live = [(k, g) for k, g in enumerate(gradient) if g is not None and g.requires_grad]

    def product(self, v: Tensors) -> Tensors:
        """∇²L(w) v."""
        if not self._live:  # the loss is linear
            return [torch.zeros_like(w) for w in self._w]
        live = [g for _, g in self._live]
        along = [v[k].to(g.dtype) for k, g in self._live]
        found = torch.autograd.grad(live, self._w, along, retain_graph=True, allow_unused=True)
        return [torch.zeros_like(w) if h is None else h.detach() for h, w in zip(found, self._w, strict=True)]

    def marked_once(self) -> bool:
        """Whether a function of the graph has a backward that torch does not differentiate: without an error, its part
        of the product would be zero."""
        seen, left = set(), [g.grad_fn for _, g in self._live]
        while left:
            node = left.pop()
            if node is not None and node not in seen:
                seen.add(node)
                left += [following for following, _ in node.next_functions]
        return any(node.name().endswith("::Error") for node in seen)


def flat(tensors: Tensors) -> np.ndarray:
    """One vector on the host."""
    joined: np.ndarray = torch.cat([t.reshape(-1).cpu() for t in tensors]).numpy()
    return joined


def shaped(v: np.ndarray, probe: Probe) -> Tensors:
    """The inverse of `flat`, on the device of the probe."""
    whole = torch.tensor(v, dtype=probe.dtype).to(probe.device)
    return [
        t.reshape(shape) for t, shape in zip(whole.split([s.numel() for s in probe.shapes]), probe.shapes, strict=True)
    ]


def dot(a: Tensors, b: Tensors) -> float:
    """aᵀb, summed in double precision, which Apple's devices lack."""
    wide = torch.float32 if a[0].device.type == "mps" else torch.float64
    return float(sum((x.to(wide) * y.to(wide)).sum() for x, y in zip(a, b, strict=True)))


@contextmanager
def _undisturbed(model: torch.nn.Module, device: torch.device) -> Iterator[None]:
    dropout = [m for m in model.modules() if isinstance(m, torch.nn.modules.dropout._DropoutNd) and m.training]
    with ExitStack() as stack:
        stack.enter_context(torch.enable_grad())
        stack.enter_context(torch.autocast(device.type, enabled=False))
        stack.enter_context(_random_numbers_kept(device))
        if "torch._dynamo" in sys.modules:  # code of torch.compile has no second derivative
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        # The fast kernels of attention have no second derivative.
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        # torch.manual_seed would seed every other device as well.
        for generator in _generators(device):
            generator.manual_seed(0)
        try:
            for module in dropout:
                module.training = False
            yield
        finally:
            for module in dropout:
                module.training = True


@contextmanager
def _random_numbers_kept(device: torch.device) -> Iterator[None]:
    """The generators of torch, numpy and Python afterwards are as before."""
    kept = random.getstate(), np.random.get_state()
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        try:
            yield
        finally:
            random.setstate(kept[0])
            np.random.set_state(kept[1])


def _generators(device: torch.device) -> list[torch.Generator]:
    cuda = [torch.cuda.default_generators[device.index or 0]] if device.type == "cuda" else []
    return [torch.default_generator, *cuda]


def first_batch(data: Any) -> Any:
    """A batch as it is, or the first one of a DataLoader; the training draws the same random numbers as without."""
    if not isinstance(data, torch.utils.data.DataLoader):
        return data
    own = [g for g in (data.generator, getattr(data.sampler, "generator", None)) if g is not None]
    states = [g.get_state() for g in own]
    with _random_numbers_kept(torch.device("cpu")):
        batch = next(iter(data), None)
    for g, state in zip(own, states, strict=True):
        g.set_state(state)
    return check.refuse("data", "a DataLoader with a batch", "an empty one", _BATCH) if batch is None else batch


def _moved(batch: Any, device: torch.device) -> Any:
    if isinstance(batch, torch.Tensor):
        return batch.detach().to(device)
    if isinstance(batch, Mapping):
        return {name: _moved(value, device) for name, value in batch.items()}
    if isinstance(batch, list | tuple):
        return tuple(_moved(value, device) for value in batch)
    return batch


def _parts(batch: Any) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
    """The positional and named arguments of the model, and what its loss is compared with."""
    if isinstance(batch, dict):
        return (), batch, batch
    if isinstance(batch, tuple) and len(batch) > 1:
        return batch[:-1], {}, batch[-1]
    return check.refuse("data", "a batch of inputs and targets", type(batch).__name__, _BATCH)
