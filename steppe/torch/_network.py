"""A private copy of the user's network that evaluates it at any parameters, so that the user's own is never touched."""

import copy
import fnmatch
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from steppe import check
from steppe.torch._exact import exact_products

# Several parameters as one argument: a pattern of names, several patterns, or a function of (name, parameter).
Chosen = str | Sequence[str] | Callable[[str, nn.Parameter], bool] | None
# Where a tensor is held: the module and its name there; a tied tensor has several places.
Places = list[tuple[nn.Module, str]]


class Network:
    """The model as a function of its parameters.

    The copy shares the tensors of the model, so that it costs no memory, but no module, buffer or hook of the model is
    ever written to. Backward hooks are left out, since they do not belong to the function; forward hooks run.
    """

    def __init__(self, model: nn.Module, parameters: Chosen = None):
        model = _bare(model)
        _full_precision(model)
        chosen = _chosen(model, parameters)
        self.names = tuple(chosen)
        self.shapes = tuple(tuple(p.shape) for p in chosen.values())
        self.dtypes = tuple(p.dtype for p in chosen.values())
        self.device = _one_device(model)
        self.start = [p.detach() for p in chosen.values()]
        self.copy = _shared_copy(model)
        twins = dict(self.copy.named_parameters(remove_duplicate=False))
        places = _places(self.copy, lambda module: module._parameters)
        self.places: list[Places] = [places[id(twins[name])] for name in self.names]
        inside = {id(twins[name]) for name in self.names}
        self.fixed = [(at, _detached(at)) for key, at in places.items() if key not in inside]
        # A buffer can change during the forward pass: each pass gets its own clone.
        held = _places(self.copy, lambda module: module._buffers)
        self.buffers = [(at, _held(at).detach().clone()) for at in held.values()]
        self.cast: torch.dtype | None = None

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the vector of all parameters."""
        return torch.float64 if torch.float64 in self.dtypes else torch.float32

    def double(self) -> "Network":
        """The same network in float64."""
        twin = copy.copy(self)
        twin.dtypes = tuple(torch.float64 for _ in self.dtypes)
        twin.start = [p.double() for p in self.start]
        twin.fixed = [(at, _wide(p)) for at, p in self.fixed]
        twin.buffers = [(at, _wide(b)) for at, b in self.buffers]
        twin.cast = torch.float64
        return twin

    def split(self, vector: Tensor) -> list[Tensor]:
        """Views of the parts of a flat vector, one for each parameter."""
        sizes = [int(np.prod(shape)) for shape in self.shapes]
        parts = zip(vector.split(sizes), self.shapes, self.dtypes, strict=True)
        return [part.view(shape).to(dtype) for part, shape, dtype in parts]

    def tensor(self, vector: np.ndarray) -> Tensor:
        """A numpy vector as a tensor of this precision, on the device of the network, in any mode of the caller."""
        kind = np.float64 if self.dtype == torch.float64 else np.float32
        # A copy: PyTorch warns of arrays that are read-only, as those of steppe.linalg.
        with torch.inference_mode(False):
            return torch.from_numpy(np.array(vector, kind)).to(self.device)

    def leaves(self, vector: np.ndarray) -> list[Tensor]:
        """The parameters at a vector, each a leaf of the graph."""
        with torch.inference_mode(False):
            return [part.clone().requires_grad_() for part in self.split(self.tensor(vector))]

    def joined(self, parts: Sequence[Tensor]) -> np.ndarray:
        """The flat numpy vector of tensors like the parameters."""
        flat = torch.cat([p.detach().reshape(-1).to(self.dtype) for p in parts])
        vector: np.ndarray = flat.cpu().numpy()
        return vector

    def ready(self, tensor: Any) -> Any:
        """A tensor of the data as the network takes it: on its device and, if real, in its precision."""
        if not isinstance(tensor, Tensor):
            return tensor
        dtype = self.cast or self.dtype
        return tensor.to(self.device, dtype) if tensor.is_floating_point() else tensor.to(self.device)

    @contextmanager
    def at(self, leaves: Sequence[Tensor]) -> Iterator[None]:
        """The copy with these parameters. A checkpointed segment computes its forward pass again during the backward
        pass, so that both run inside."""
        before = [(at, _held(at)) for at in [*self.places, *(at for at, _ in self.fixed)]]
        with exact_products(self.copy, self.device):
            try:
                for at, leaf in zip(self.places, leaves, strict=True):
                    _put(at, leaf)
                for at, tensor in self.fixed:
                    _put(at, tensor)
                yield
            finally:
                for at, tensor in before:
                    _put(at, tensor)

    def __call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The outputs; only inside of `at`."""
        for at, buffer in self.buffers:
            _put(at, buffer.clone())
        return self.copy(*args, **kwargs)

    def binds(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Whether the forward method takes these arguments."""
        try:
            inspect.signature(self.copy.forward).bind(*args, **kwargs)
        except TypeError:
            return False
        return True

    def owner(self, index: int) -> str:
        """The module of a parameter, for messages."""
        return self.names[index].rpartition(".")[0] or "the module itself"


def _bare(model: Any) -> nn.Module:
    """The module inside of wrappers for several processes and of torch.compile."""
    if not isinstance(model, nn.Module):
        check.refuse("model", "a torch.nn.Module", model, "Pass the module, not its class or its outputs.")
    if isinstance(model, torch.jit.ScriptModule):
        remedy = "Build the module in Python, and load the weights: module.load_state_dict(scripted.state_dict())."
        check.refuse("model", "a plain torch.nn.Module", "a ScriptModule", remedy)
    while True:
        if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
            model = model.module
        elif isinstance(inner := vars(model).get("_modules", {}).get("_orig_mod"), nn.Module):
            model = inner
        else:
            break
    return model


def _chosen(model: nn.Module, parameters: Chosen) -> dict[str, nn.Parameter]:
    """The parameters to differentiate by, by name, each tensor once."""
    named = dict(model.named_parameters())
    if not named:
        check.refuse("model", "a module with parameters", type(model).__name__, "There is nothing to differentiate by.")
    if parameters is None:
        chosen = {name: p for name, p in named.items() if p.requires_grad}
        remedy = "Name those to use, for instance parameters='*', or call requires_grad_(True)."
        rule, argument = "a module with parameters that require a gradient", "model"
    else:
        takes = _pattern(parameters)
        aliases: dict[int, list[str]] = {}
        for name, p in model.named_parameters(remove_duplicate=False):
            aliases.setdefault(id(p), []).append(name)
        chosen = {name: p for name, p in named.items() if any(takes(alias, p) for alias in aliases[id(p)])}
        remedy = check.suggest(parameters if isinstance(parameters, str) else "", named)
        rule, argument = "a choice of parameters of the model", "parameters"
    if not chosen:
        check.refuse(argument, rule, parameters if argument == "parameters" else "none", remedy)
    for name, p in chosen.items():
        if not p.is_floating_point():
            check.refuse(f"model.{name}", "of a real floating type", str(p.dtype), "Leave it out of `parameters`.")
    return chosen


def _pattern(parameters: Chosen) -> Callable[[str, nn.Parameter], bool]:
    if callable(parameters):
        return parameters
    patterns = [parameters] if isinstance(parameters, str) else list(parameters or ())
    if not all(isinstance(pattern, str) for pattern in patterns):
        check.refuse("parameters", "a pattern of names, or several", parameters, "Pass for instance 'layer1.*'.")
    return lambda name, p: any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _one_device(model: nn.Module) -> torch.device:
    devices = {t.device for t in [*model.parameters(), *model.buffers()]}
    if len(devices) > 1:
        seen = ", ".join(sorted(map(str, devices)))
        remedy = "A product would be split over them: move the model with model.to(device)."
        check.refuse("model", "on one device", seen, remedy)
    (device,) = devices
    if device.type == "meta":
        check.refuse("model", "a module with numbers in its parameters", "parameters on 'meta'", "Load its weights.")
    return device


def _full_precision(model: nn.Module) -> None:
    for name, p in model.named_parameters():
        if isinstance(p, nn.parameter.UninitializedParameter):
            check.refuse(f"model.{name}", "a parameter with a shape", "a lazy one", "Call the model on a batch first.")
        if p.is_floating_point() and p.element_size() < 4:
            # Rounded to three digits, ∇²L v is neither linear in v nor symmetric.
            remedy = "Measure a copy: copy.deepcopy(model).float()."
            check.refuse(f"model.{name}", "float32 or float64 for curvature", str(p.dtype), remedy)
        if p.is_complex():
            check.refuse(f"model.{name}", "real", str(p.dtype), "Use real and imaginary parts as parameters.")


def _shared_copy(model: nn.Module) -> nn.Module:
    """A copy of the modules that shares their tensors."""
    memo: dict[int, Any] = {id(t): t for t in [*model.parameters(), *model.buffers()]}
    for module in model.modules():
        for value in vars(module).values():
            # Such as the weight that torch.nn.utils.weight_norm computes in each pass.
            if isinstance(value, Tensor) and not value.is_leaf:
                memo[id(value)] = value.detach().clone()
    try:
        twin = copy.deepcopy(model, memo)
    except Exception as error:
        remedy = "Steppe works on a copy, so that yours stays as it is; remove what cannot be copied from it."
        check.refuse("model", "a module that copy.deepcopy can copy", f"{type(error).__name__}: {error}", remedy)
    for module in twin.modules():
        module._backward_hooks.clear()
        module._backward_pre_hooks.clear()
        module._compiled_call_impl = None
        if isinstance(module, nn.Embedding | nn.EmbeddingBag):
            module.sparse = False  # a sparse gradient has no derivative
    return twin


def _places(model: nn.Module, kind: Callable[[nn.Module], dict[str, Any]]) -> dict[int, Places]:
    """Where each tensor of a kind is held, by its id."""
    found: dict[int, Places] = {}
    for module in model.modules():
        for name, tensor in kind(module).items():
            if tensor is not None:
                found.setdefault(id(tensor), []).append((module, name))
    return found


def _slots(module: nn.Module, name: str) -> dict[str, Any]:
    return module._parameters if name in module._parameters else module._buffers


def _held(at: Places) -> Tensor:
    tensor: Tensor = _slots(*at[0])[at[0][1]]
    return tensor


def _detached(at: Places) -> Tensor:
    return _held(at).detach()


def _put(at: Places, tensor: Tensor) -> None:
    for module, name in at:
        _slots(module, name)[name] = tensor


def _wide(tensor: Tensor) -> Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def dropouts(model: nn.Module) -> list[str]:
    """The names of the modules in training mode that draw random numbers."""
    found = []
    for name, module in model.named_modules():
        if not module.training:
            continue
        rate = getattr(module, "p", 0.0) if "Dropout" in type(module).__name__ else getattr(module, "dropout", 0.0)
        if isinstance(module, nn.RReLU) or (isinstance(rate, float) and rate > 0.0):
            found.append(name or type(module).__name__)
    return found
