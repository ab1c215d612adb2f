"""Modules of Equinox and Flax as functions predict(params, x)."""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import equinox as eqx
import jax
import jax.numpy as jnp
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


def functional(module: Any, arguments: Mapping[str, Any]) -> tuple[Predict, Any]:
    """The function of (params, x) that a module is, called with these further arguments, and its parameters."""
    held = _Held(dict(arguments))
    found = _of_equinox(module, held)
    # Only a program that has loaded Flax can have a module of it.
    if found is None and "flax" in sys.modules:
        found = _of_flax(module, held)
    if found is None:
        kinds = "an Equinox module, (Equinox module, state), (linen module, variables) or an nnx module"
        remedy = "For a function of your own call steppe.Problem(predict, params, x, y, loss)."
        check.refuse("module", kinds, module, remedy)
    return found


@dataclass(frozen=True)
class _Held:
    """A tree with arrays that is equal to a tree with equal arrays, so that equal networks share compiled code."""

    tree: Any = field(compare=False)
    content: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        leaves, structure = jax.tree.flatten(self.tree)
        object.__setattr__(self, "content", (structure, tuple(map(_comparable, leaves))))

    def fresh(self) -> Any:
        """The tree anew: the variables of nnx and the state of Equinox belong to the trace that made them."""
        return jax.tree.map(lambda leaf: leaf, self.tree)


def _comparable(leaf: Any) -> Any:
    if isinstance(leaf, Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    if isinstance(leaf, Array | np.ndarray):
        plain = np.asarray(leaf)
        return plain.shape, str(plain.dtype), plain.tobytes()
    return leaf


# Equinox.


@dataclass(frozen=True)
class _Equinox:
    """A module takes one example, and a state if it has one; batch statistics go by the name of its axis."""

    fixed: _Held
    state: _Held
    axis: Any
    arguments: _Held

    def __call__(self, params: Any, x: Any) -> Array:
        module, state = eqx.combine(params, self.fixed.tree), self.state.fresh()
        if state is None:
            outputs: Array = jax.vmap(lambda row: module(row, **self.arguments.tree))(x)
            return outputs

        def one(row: Any) -> Any:
            return module(row, state, **self.arguments.tree)

        outputs, _ = jax.vmap(one, out_axes=(0, None), axis_name=self.axis)(x)
        return outputs


def _of_equinox(module: Any, arguments: _Held) -> tuple[Predict, Any] | None:
    state = None
    if isinstance(module, tuple) and len(module) == 2 and isinstance(module[1], eqx.nn.State):
        module, state = module
    if not isinstance(module, eqx.Module):
        return None

    def special(part: Any) -> bool:
        return isinstance(part, eqx.nn.Dropout | eqx.nn.StateIndex | eqx.nn.BatchNorm)

    parts = [part for part in jax.tree.leaves(module, is_leaf=special) if special(part)]
    for part in parts:
        if not isinstance(part, eqx.nn.Dropout) and state is None:
            remedy = "Pass (module, state), as equinox.nn.make_with_state(...) returns them."
            check.refuse("module", "given with its state, such as running statistics", type(module).__name__, remedy)
        if isinstance(part, eqx.nn.Dropout) and not part.inference and part.p > 0:
            check.refuse("module", "without dropout", part, "Pass equinox.nn.inference_mode(module).")
    axes = {part.axis_name for part in parts if isinstance(part, eqx.nn.BatchNorm)}
    if len(axes) > 1:
        remedy = "Close over the state: steppe.Problem(lambda params, x: ..., params, x, y, loss)."
        check.refuse("module", "with batch statistics over one axis", sorted(map(str, axes)), remedy)
    params, fixed = eqx.partition(module, eqx.is_inexact_array)
    return _Equinox(_Held(fixed), _Held(state), next(iter(axes), None), arguments), params


# Flax.


def _of_flax(module: Any, arguments: _Held) -> tuple[Predict, Any] | None:
    from flax import linen, nnx

    if isinstance(module, tuple) and len(module) == 2 and isinstance(module[0], linen.Module):
        return _of_linen(*module, arguments)
    if isinstance(module, linen.Module):
        remedy = "Pass (module, variables), with variables = module.init(key, x)."
        check.refuse("module", "a linen module with its variables", type(module).__name__, remedy)
    if not isinstance(module, nnx.Module):
        return None
    graph, params, rest = nnx.split(module, nnx.Param, ...)
    return _Nnx(graph, _Held(rest), arguments), params


@dataclass(frozen=True)
class _Linen:
    module: Any
    rest: _Held
    arguments: _Held

    def __call__(self, params: Any, x: Any) -> Array:
        from flax.errors import InvalidRngError

        # In training mode running statistics are written: they may be, and are dropped.
        written = list(self.rest.tree)
        try:
            found = self.module.apply(
                {"params": params, **self.rest.tree}, x, mutable=written or False, **self.arguments.tree
            )
        except InvalidRngError as error:
            _refuse_random(error)
        outputs: Array = found[0] if written else found
        return outputs


def _of_linen(module: Any, variables: Any, arguments: _Held) -> tuple[Predict, Any]:
    if "params" not in variables:
        check.refuse("variables", "a dictionary with 'params'", sorted(variables), "Pass module.init(key, x).")
    # Running statistics are not parameters.
    rest = {name: value for name, value in variables.items() if name != "params"}
    try:
        hash(module)
    except TypeError:  # an attribute is a list, as in linen.Sequential
        module = _Alone(module)
    return _Linen(module, _Held(rest), arguments), variables["params"]


@dataclass(frozen=True, eq=False)
class _Alone:
    """A module without hash, equal to nothing but itself."""

    module: Any

    def apply(self, *args: Any, **options: Any) -> Any:
        return self.module.apply(*args, **options)


@dataclass(frozen=True)
class _Nnx:
    graph: Any
    rest: _Held
    arguments: _Held

    def __call__(self, params: Any, x: Any) -> Array:
        from flax import nnx

        module = nnx.merge(self.graph, params, self.rest.fresh())
        before = jax.tree.leaves(nnx.state(module, nnx.RngCount))
        outputs: Array = module(x, **self.arguments.tree)
        after = jax.tree.leaves(nnx.state(module, nnx.RngCount))
        if any(old is not new for old, new in zip(before, after, strict=True)):
            _refuse_random("it draws random numbers")
        return outputs


def _refuse_random(seen: Any) -> NoReturn:
    remedy = (
        "Call it as in evaluation: module.eval() in nnx, in linen deterministic=True or Problem.of(..., train=False)."
    )
    check.refuse("module", "without dropout or noise", " ".join(str(seen).split())[:120], remedy)
