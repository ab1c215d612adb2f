"""The loss of one batch near the parameters of a module that is in training: value, gradient, Hessian products.

`steppe.torch.Problem` is a snapshot; here the module itself runs, in the modes and with the buffers that it has now.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn

from steppe import check
from steppe.torch import _loss
from steppe.torch._exact import exact_products, kept_randomness, seed
from steppe.torch._network import Network
from steppe.torch._problem import _read as read
from steppe.torch._problem import gradients
from steppe.torch._products import _pulled as pulled
from steppe.torch._products import _refuse_once_differentiable as refuse_once_differentiable


@final
class Probe:
    """L at given values of the parameters of `network`, on a batch, with `model` as it is now.

    Nothing of the model changes: parameters and buffers are replaced as long as a point is in use, gradients are not
    accumulated, and the random numbers are those of a fixed seed, so that L is one function. Dropout layers are off.
    """

    def __init__(self, model: nn.Module, network: Network, batch: Any, loss: Any) -> None:
        self._model, self._network = model, network
        self._loss = _loss.read(_of_outputs if loss is None else loss, None)
        self._batch = read(batch, network, self._loss).each(network.ready)

    @contextmanager
    def at(self, w: Sequence[Tensor]) -> Iterator["Point"]:
        """The point w; products are taken inside, since a checkpointed segment runs again in each of them."""
        model, batch = self._model, self._batch
        leaves = [v.detach().clone().requires_grad_() for v in w]
        named = dict(model.named_parameters())
        twins = {id(named[name]): leaf for name, leaf in zip(self._network.names, leaves, strict=True)}
        twins |= {id(buffer): buffer.detach().clone() for buffer in model.buffers()}
        with exact_products(model, self._network.device), _without_dropout(model), _replaced(model, twins):
            seed(0, self._network.device)
            value = self._loss(model(*batch.args, **batch.kwargs), batch.target)
            if not value.requires_grad:
                remedy = "Do not detach the outputs, and do not compute the loss under no_grad."
                check.refuse("loss", "a differentiable function of the parameters", "a constant", remedy)
            yield Point(float(value.detach()), leaves, gradients(value, leaves, create_graph=True))


@final
class Point:
    """The loss at w, its gradient, and products with the Hessian by double backward, with the graph kept."""

    def __init__(self, loss: float, w: list[Tensor], gradient: Sequence[Tensor]) -> None:
        self.loss, self._w, self._graph = loss, w, gradient
        self.gradient = [g.detach() for g in gradient]

    def product(self, v: Sequence[Tensor]) -> list[Tensor]:
        """∇²L(w) v."""
        along = [part.to(g.dtype) for part, g in zip(v, self._graph, strict=True)]
        return [h.detach() for h in pulled(self._graph, self._w, along)]

    def refuse_once_differentiable(self) -> None:
        """Refuses a network with a function that has a first derivative only."""
        refuse_once_differentiable([g for g in self._graph if g.requires_grad])


def dot(a: Sequence[Tensor], b: Sequence[Tensor]) -> float:
    """aᵀb, summed in double precision, which Apple's devices lack."""
    wide = torch.float32 if a[0].device.type == "mps" else torch.float64
    return float(sum((x.to(wide) * y.to(wide)).sum() for x, y in zip(a, b, strict=True)))


def first_batch(data: Any) -> Any:
    """A batch as it is, or the first one of a DataLoader; the training draws the same random numbers as without."""
    if not isinstance(data, torch.utils.data.DataLoader):
        return data
    own = [g for g in (data.generator, getattr(data.sampler, "generator", None)) if g is not None]
    states = [g.get_state() for g in own]
    with kept_randomness():
        batch = next(iter(data), None)
    for g, state in zip(own, states, strict=True):
        g.set_state(state)
    if batch is None:
        check.refuse("data", "a DataLoader with a batch", "an empty one", "Is the dataset empty?")
    return batch


def flat(parts: Sequence[Tensor]) -> np.ndarray:
    """One vector on the host, in the precision of the parts."""
    vector: np.ndarray = torch.cat([p.reshape(-1) for p in parts]).cpu().numpy()
    return vector


def _of_outputs(outputs: Any, batch: Any) -> Any:
    return outputs.loss


@contextmanager
def _without_dropout(model: nn.Module) -> Iterator[None]:
    dropout = [m for m in model.modules() if isinstance(m, nn.modules.dropout._DropoutNd) and m.training]
    try:
        for module in dropout:
            module.training = False
        yield
    finally:
        for module in dropout:
            module.training = True


@contextmanager
def _replaced(model: nn.Module, twins: dict[int, Tensor]) -> Iterator[None]:
    """The model with other tensors in the places of its parameters and buffers, tied ones in all of their places."""
    kept = []
    # Recurrent layers have lists of their own.
    lists = [(m, m._flat_weights, m._flat_weight_refs) for m in model.modules() if isinstance(m, nn.RNNBase)]
    try:
        for module in model.modules():
            for slots in (module._parameters, module._buffers):
                for name, tensor in slots.items():
                    if (twin := twins.get(id(tensor))) is not None:
                        kept.append((slots, name, tensor))
                        slots[name] = twin
        yield
    finally:
        for slots, name, tensor in kept:
            slots[name] = tensor
        for module, weights, references in lists:
            module._flat_weights, module._flat_weight_refs = weights, references
