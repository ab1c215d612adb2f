"""Weights from a file, and nothing but weights: no code of a checkpoint is executed."""

import copy
import pickle
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from steppe import check
from steppe.curvature import backend
from steppe.problem import Problem

# Where training scripts keep the weights in a larger file, and what wrappers put in front of each name.
_INSIDE = ("state_dict", "model_state_dict", "model", "params", "weights")
_WRAPPERS = ("module.", "_orig_mod.")


def weights(path: str | Path) -> dict[str, Any]:
    """The arrays of a .safetensors file, or the tensors of a .pt, .pth, .bin or .ckpt file of PyTorch, by name."""
    path = Path(path)
    if not path.is_file():
        check.refuse("checkpoint", "a file that exists", str(path), "Pass FILE.pt or FILE.safetensors.")
    if path.suffix == ".safetensors":
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        try:
            found: Mapping[str, Any] = load_file(path)
        except (SafetensorError, TypeError, KeyError) as error:
            check.refuse("checkpoint", "a whole safetensors file of real numbers", f"{path}: {error}", "Save it again.")
    else:
        found = _of_torch(path)
    for wrapper in _WRAPPERS:
        if found and all(name.startswith(wrapper) for name in found):
            found = {name.removeprefix(wrapper): value for name, value in found.items()}
    return dict(found)


def _of_torch(path: Path) -> Mapping[str, Any]:
    try:
        import torch
    except ModuleNotFoundError:
        remedy = "Install PyTorch (pip install 'steppe[torch]'), or save the weights as .safetensors."
        check.refuse("checkpoint", "a .safetensors file where PyTorch is not installed", str(path), remedy)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of old formats: what cannot be read is refused
            found = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        remedy = "Save model.state_dict(), not the model: a checkpoint with code is not opened."
        check.refuse("checkpoint", "a file of weights only", f"{path}: {first[:200]}", remedy)
    for name in _INSIDE:
        if isinstance(found, Mapping) and isinstance(found.get(name), Mapping):
            found = found[name]
            break
    if not isinstance(found, Mapping) or not all(isinstance(value, torch.Tensor) for value in found.values()):
        remedy = "Save model.state_dict()."
        check.refuse("checkpoint", "a dictionary of tensors", f"{path} with a {type(found).__name__}", remedy)
    return found


def at(model: Any, path: str | Path) -> tuple[Any, Any]:
    """(model, w) for an audit with the weights of a file: a copy of a torch module with all its buffers, or a problem
    with the vector w."""
    found = weights(path)
    if isinstance(model, Problem):
        return model, _vector(backend(model).arrays(model), found, path)
    import torch

    if isinstance(model, torch.nn.Module):
        loaded = copy.deepcopy(model)
        try:
            loaded.load_state_dict({name: torch.as_tensor(value) for name, value in found.items()})
        except RuntimeError as error:
            remedy = "Build the model of the checkpoint."
            check.refuse("checkpoint", "the weights of this model", " ".join(str(error).split())[:300], remedy)
        return loaded, None
    arrays = backend(model).arrays(model)
    if others := sorted(set(found) - set(arrays)):
        remedy = "Return (model, data, loss): then buffers and frozen parameters are loaded too."
        check.refuse("checkpoint", "the parameters of the problem and no others", ", ".join(others[:3]), remedy)
    return model, _vector(arrays, found, path)


def _vector(arrays: Mapping[str, tuple[int, ...]], found: Mapping[str, Any], path: str | Path) -> Any:
    """The arrays as one flat vector, in the order of the problem."""
    if missing := [name for name in arrays if name not in found]:
        remedy = check.suggest(missing[0], found) if found else "The file is empty."
        check.refuse("checkpoint", f"a file with {', '.join(arrays)}", f"{path} without {missing[0]!r}", remedy)
    parts = [np.asarray(found[name]) for name in arrays]
    for (name, shape), part in zip(arrays.items(), parts, strict=True):
        if part.shape != shape:
            remedy = "Build the network of the checkpoint."
            check.refuse(f"checkpoint {name!r}", f"of shape {shape}", part.shape, remedy)
    return np.concatenate([part.ravel() for part in parts])
