"""Modules of Equinox and Flax as functions predict(params, x)."""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import Array

from steppe import check

Predict = Callable[[Any, Any], Array]

# What Flax and PyTorch call the statistics that a network keeps of its inputs. They have no gradient.
_STATISTICS = {"batch_stats", "running_mean", "running_var", "num_batches_tracked"}


def refuse_statistics(params: Any) -> None:
    """Refuses parameters with running statistics among them, which a dictionary of all variables of a module has."""

    def held(part: Any) -> bool:
        return isinstance(part, eqx.nn.State) or _is_variable(part)

    remedy = (
        "They are no parameters: pass variables['params'] alone and hold the rest fixed, or build the problem with "
        "steppe.Problem.of(module, x, y, loss)."
    )
    if isinstance(params, Mapping) and "params" in params and len(params) > 1:
        others = sorted(str(name) for name, part in params.items() if name != "params" and isinstance(part, Mapping))
        if others and isinstance(params["params"], Mapping):
            check.refuse("params", "parameters only", f"the collections {others} beside 'params'", remedy)
    for path, leaf in jax.tree_util.tree_leaves_with_path(params, is_leaf=held):
        where = jax.tree_util.keystr(path)
        names = set(re.split(r"\W+", where))
        if held(leaf) or names & _STATISTICS:
            got = f"params{where}, {type(leaf).__name__}" if held(leaf) else f"params{where}"
            check.refuse("params", "parameters only, without running statistics", got, remedy)


def _is_variable(part: Any) -> bool:
    """Whether it is a variable of Flax's nnx that is no parameter."""
    if "flax" not in sys.modules:
        return False
    from flax import nnx

    return isinstance(part, nnx.Variable) and not isinstance(part, nnx.Param)


def functional(module: Any) -> tuple[Predict, Any]:
    """The function of (params, x) that a module is, and its parameters."""
    found = _of_equinox(module) if isinstance(module, eqx.Module) else None
    # Only a program that has loaded Flax can have a module of it.
    if found is None and "flax" in sys.modules:
        found = _of_flax(module)
    if found is None:
        remedy = "For a function of your own call steppe.Problem(predict, params, x, y, loss)."
        check.refuse("module", "an Equinox module, (linen module, variables) or an nnx module", module, remedy)
    return found


def _of_flax(module: Any) -> tuple[Predict, Any] | None:
    from flax import linen, nnx

    if isinstance(module, tuple) and len(module) == 2 and isinstance(module[0], linen.Module):
        return _of_linen(*module)
    if isinstance(module, linen.Module):
        remedy = "Pass (module, variables), with variables = module.init(key, x)."
        check.refuse("module", "a linen module with its variables", type(module).__name__, remedy)
    if not isinstance(module, nnx.Module):
        return None
    graph, params, rest = nnx.split(module, nnx.Param, ...)
    return _Nnx(graph, _Held(rest)), params


@dataclass(frozen=True)
class _Held:
    """A tree with arrays that is equal to a tree with equal arrays, so that equal networks share compiled code."""

    tree: Any = field(compare=False)
    content: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        leaves, structure = jax.tree.flatten(self.tree)
        object.__setattr__(self, "content", (structure, tuple(map(_comparable, leaves))))


def _comparable(leaf: Any) -> Any:
    if isinstance(leaf, Array | np.ndarray):
        plain = np.asarray(leaf)
        return plain.shape, str(plain.dtype), plain.tobytes()
    return leaf


@dataclass(frozen=True)
class _Equinox:
    fixed: _Held

    def __call__(self, params: Any, x: Any) -> Array:
        # A module of Equinox takes one example.
        outputs: Array = jax.vmap(eqx.combine(params, self.fixed.tree))(x)
        return outputs


def _of_equinox(module: Any) -> tuple[Predict, Any]:
    def special(part: Any) -> bool:
        return isinstance(part, eqx.nn.Dropout | eqx.nn.StateIndex)

    for part in jax.tree.leaves(module, is_leaf=special):
        if isinstance(part, eqx.nn.StateIndex):
            remedy = "Close over the state: steppe.Problem(lambda params, x: ..., params, x, y, loss)."
            check.refuse("module", "without a state, such as running statistics", type(module).__name__, remedy)
        if isinstance(part, eqx.nn.Dropout) and not part.inference and part.p > 0:
            check.refuse("module", "without dropout", part, "Pass equinox.nn.inference_mode(module).")
    params, fixed = eqx.partition(module, eqx.is_inexact_array)
    return _Equinox(_Held(fixed)), params


@dataclass(frozen=True)
class _Linen:
    module: Any
    rest: _Held

    def __call__(self, params: Any, x: Any) -> Array:
        outputs: Array = self.module.apply({"params": params, **self.rest.tree}, x)
        return outputs


def _of_linen(module: Any, variables: Any) -> tuple[Predict, Any]:
    if "params" not in variables:
        check.refuse("variables", "a dictionary with 'params'", sorted(variables), "Pass module.init(key, x).")
    # Running statistics are not parameters.
    rest = {name: value for name, value in variables.items() if name != "params"}
    try:
        hash(module)
    except TypeError:  # an attribute is a list, as in linen.Sequential
        module = _Alone(module)
    return _Linen(module, _Held(rest)), variables["params"]


@dataclass(frozen=True, eq=False)
class _Alone:
    """A module without hash, equal to nothing but itself."""

    module: Any

    def apply(self, *args: Any) -> Any:
        return self.module.apply(*args)


@dataclass(frozen=True)
class _Nnx:
    graph: Any
    rest: _Held

    def __call__(self, params: Any, x: Any) -> Array:
        from flax import nnx

        outputs: Array = nnx.merge(self.graph, params, self.rest.tree)(x)
        return outputs
