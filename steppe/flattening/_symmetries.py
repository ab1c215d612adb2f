"""The scale groups of a JAX network, read off its equations: what each primitive does to log-scales."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.extend import core

from steppe._same import bodies
from steppe.curvature._equations import Equation, evaluate, walk
from steppe.flattening._scales import STILL, Groups, Held, Indices, Scaled, Scales, Token

# A loop over layers is read layer by layer, if it has at most so many.
_ROUNDS = 256


def scale_groups(closed: core.ClosedJaxpr, sizes: Sequence[tuple[int, ...]]) -> Groups:
    """The scale groups of a function whose first inputs are arrays of parameters of these shapes, and the rest data.

    >>> import jax
    >>> from steppe._same import traced
    >>> def network(V, W, x):
    ...     return V @ jax.nn.relu(W @ x)
    >>> shapes = ((1, 2), (2, 3))
    >>> found = scale_groups(traced(network, *map(np.ones, shapes), np.ones(3)), shapes)
    >>> found.rows.toarray()[found.of].tolist()                 # V₀ V₁, and W row by row
    [[-1.0, 0.0], [0.0, -1.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]
    """
    ends = np.cumsum([0, *(int(np.prod(shape)) for shape in sizes)])
    scales = Scales(int(ends[-1]))
    tokens: list[Token] = [
        Held(np.arange(start, stop).reshape(shape)) for start, stop, shape in zip(ends, ends[1:], sizes, strict=False)
    ]
    tokens += [Scaled(_still(v.aval.shape)) for v in closed.jaxpr.invars[len(sizes) :]]
    scales.still(*walk(closed, tokens, lambda equation, inputs: step(scales, equation, inputs)))
    return scales.groups()


def step(scales: Scales, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    """The outputs of one equation. One that is not known is assumed to be homogeneous in nothing."""
    if not any(isinstance(a, Held | Scaled) for a in inputs):
        return evaluate(equation, inputs)
    name = equation.primitive.name
    shapes = [v.aval.shape for v in equation.outvars]
    if name in _MOVES:
        return _moved(scales, equation, inputs)
    if name in _ENTERED:
        return walk(bodies(equation)[0], inputs, lambda inner, values: step(scales, inner, values))
    if name == "scan" and equation.params["length"] <= _ROUNDS:
        return _unrolled(scales, equation, inputs)
    rule = _RULES.get(name)
    ids = None if rule is None else rule(scales, equation, inputs)
    if ids is None:
        scales.still(*inputs)
        return [Scaled(_still(shape)) for shape in shapes]
    return [Scaled(np.broadcast_to(ids, shape)) for shape in shapes]


def _still(shape: tuple[int, ...]) -> Indices:
    return np.broadcast_to(np.full((), STILL), shape)


# Equations that only move the entries of arrays.

_SAME_ENTRIES = frozenset({"convert_element_type", "copy", "copy_p", "reduce_precision", "optimization_barrier",
                           "sharding_constraint", "stop_gradient"})  # fmt: skip
_MOVES = _SAME_ENTRIES | {"transpose", "reshape", "squeeze", "expand_dims", "rev", "broadcast_in_dim", "slice",
                          "concatenate", "pad", "split", "gather", "dynamic_slice", "dynamic_update_slice"}  # fmt: skip
_ENTERED = frozenset({"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"})


def _moved(scales: Scales, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    name, params = equation.primitive.name, equation.params
    arrays = inputs[: _ARRAYS.get(name, len(inputs))]
    rest = inputs[len(arrays) :]
    if any(isinstance(a, Held | Scaled) for a in rest):
        # Which entry is taken depends on the data: all of them have to be alike.
        if name not in ("gather", "dynamic_slice"):
            scales.still(*inputs)
            return [Scaled(_still(v.aval.shape)) for v in equation.outvars]
        shape = _shape(arrays[0])
        axes = params["dimension_numbers"].start_index_map if name == "gather" else range(len(shape))
        arrays = [Scaled(np.broadcast_to(scales.tie(arrays[0], axes), shape))]
        rest = [jnp.zeros(v.aval.shape, v.aval.dtype) for v in equation.invars[1:]]
    if all(isinstance(a, Held) for a in arrays):
        kind: Any = Held
        numbers = [a.entries for a in arrays]
    else:
        kind, numbers = Scaled, [scales.read(a) for a in arrays]
    return [kind(np.asarray(a)) for a in _entries(equation, numbers, rest)]


# How many inputs of an equation are arrays whose entries it moves; the others say where.
_ARRAYS = {"gather": 1, "dynamic_slice": 1, "dynamic_update_slice": 2}


def _entries(equation: Equation, arrays: list[Indices], rest: list[Any]) -> Sequence[Any]:
    """In numpy where that keeps an array that repeats its entries small: JAX would write it out."""
    name, params, shape = equation.primitive.name, equation.params, equation.outvars[0].aval.shape
    first = arrays[0]
    if name in _SAME_ENTRIES:
        return arrays
    if name == "transpose":
        return [first.transpose(params["permutation"])]
    if name == "rev":
        return [np.flip(first, params["dimensions"])]
    if name in ("reshape", "squeeze", "expand_dims"):
        return [first.reshape(shape)]
    if name == "broadcast_in_dim":
        beside = np.ones(len(shape), int)
        beside[list(params["broadcast_dimensions"])] = first.shape
        return [np.broadcast_to(first.reshape(beside), shape)]
    if name == "slice":
        steps = params["strides"] or [1] * first.ndim
        return [first[tuple(map(slice, params["start_indices"], params["limit_indices"], steps))]]
    if name == "concatenate":
        return [np.concatenate(arrays, params["dimension"])]
    if name == "split":
        return np.split(first, np.cumsum(params["sizes"])[:-1], params["axis"])
    return evaluate(equation, [*(jnp.asarray(a.astype(np.int32)) for a in arrays), *rest])


def _unrolled(scales: Scales, equation: Equation, inputs: list[Any]) -> list[Any]:
    """A scan, round by round."""
    params = equation.params
    fixed, carried, order = params["num_consts"], params["num_carry"], range(params["length"])
    carry, rows = list(inputs[fixed : fixed + carried]), []
    for i in reversed(order) if params["reverse"] else order:
        xs = [_taken(a, i) for a in inputs[fixed + carried :]]
        outputs = walk(params["jaxpr"], [*inputs[:fixed], *carry, *xs], lambda e, values: step(scales, e, values))
        carry = outputs[:carried]
        rows.append(outputs[carried:])
    rows = rows[::-1] if params["reverse"] else rows
    return [*carry, *(Scaled(np.stack([scales.read(a) for a in column])) for column in zip(*rows, strict=True))]


def _taken(token: Any, i: int) -> Any:
    if isinstance(token, Held):
        return Held(token.entries[i])
    return Scaled(token.ids[i]) if isinstance(token, Scaled) else token[i]


# All other equations: the forms of the output, or None if the equation is homogeneous in nothing.

Rule = Callable[[Scales, Equation, list[Any]], Indices | None]


def _shape(token: Any) -> tuple[int, ...]:
    if isinstance(token, Held):
        return token.entries.shape
    return token.ids.shape if isinstance(token, Scaled) else np.shape(token)


def _signs(scales: Scales, equation: Equation, inputs: list[Any]) -> Indices:
    """A comparison, or a sign: the same for all positive scales."""
    if len(inputs) > 1:
        scales.same(*inputs)
    return _still(())


def _selected(scales: Scales, equation: Equation, inputs: list[Any]) -> Indices:
    scales.still(inputs[0])
    return scales.same(*inputs[1:])


def _raised(scales: Scales, equation: Equation, inputs: list[Any]) -> Indices | None:
    base, power = inputs
    if isinstance(power, Held | Scaled) or np.size(power) != 1:
        return None
    return scales.power(base, float(np.asarray(power).reshape(())))


def _reduced(scales: Scales, equation: Equation, inputs: list[Any]) -> Indices:
    axes = equation.params["axes"]
    return scales.tie(inputs[0], axes).squeeze(tuple(axes))


def _ranked(scales: Scales, equation: Equation, inputs: list[Any]) -> Indices:
    scales.tie(inputs[0], equation.params["axes"])
    return _still(())


def _pooled(scales: Scales, equation: Equation, inputs: list[Any]) -> Indices:
    """A sum or a maximum over windows."""
    shape = equation.outvars[0].aval.shape
    window = equation.params["window_dimensions"]
    axes = [k for k, length in enumerate(window) if length > 1 or shape[k] != _shape(inputs[0])[k]]
    ids = scales.tie(inputs[0], axes)
    return ids[tuple(slice(0, 1) if k in axes else slice(None) for k in range(ids.ndim))]


def _accumulated(scales: Scales, equation: Equation, inputs: list[Any]) -> Indices:
    return scales.tie(inputs[0], [equation.params["axis"]])


def _product(scales: Scales, equation: Equation, inputs: list[Any]) -> Indices:
    """dot_general: to (B, M, K) and (B, K, N), and back."""
    (left, right), (left_batch, right_batch) = equation.params["dimension_numbers"]
    a, c = (_as_token(t) for t in inputs)
    rows = [k for k in range(len(_shape(a))) if k not in (*left, *left_batch)]
    columns = [k for k in range(len(_shape(c))) if k not in (*right, *right_batch)]
    ids = scales.contract(_grouped(a, left_batch, rows, left), _grouped(c, right_batch, right, columns))
    lengths = [[_shape(a)[k] for k in left_batch], [_shape(a)[k] for k in rows], [_shape(c)[k] for k in columns]]
    # Equal forms along a group have length 1.
    beside = [group if size > 1 else [1] * len(group) for group, size in zip(lengths, ids.shape, strict=True)]
    return ids.reshape([*chain(*beside)])


def _as_token(value: Any) -> Token:
    return value if isinstance(value, Held | Scaled) else Scaled(_still(np.shape(value)))


def _grouped(token: Token, *groups: Sequence[int]) -> Token:
    """The array with three axes, each made of a group of its own."""
    array = token.entries if isinstance(token, Held) else token.ids
    array = array.transpose([*chain(*groups)])
    shape, start = [], 0
    for group in groups:
        stop = start + len(group)
        repeats = isinstance(token, Scaled) and all(s == 0 for s in array.strides[start:stop])
        if repeats:
            array = array[(slice(None),) * start + (slice(0, 1),) * len(group)]
        shape.append(int(np.prod(array.shape[start:stop])))
        start = stop
    return type(token)(array.reshape(shape))


def _convolved(scales: Scales, equation: Equation, inputs: list[Any]) -> Indices | None:
    """A convolution is a product at every pixel with the same kernel: the pixels of a channel have one form."""
    params = equation.params
    if params["batch_group_count"] != 1:
        return None
    numbers, groups = params["dimension_numbers"], params["feature_group_count"]
    image, kernel = (_as_token(t) for t in inputs)
    batch, channel, *space = numbers.lhs_spec
    pixels = scales.tie(image, [batch, *space]).transpose(numbers.lhs_spec)
    channels = pixels[(slice(1), slice(None), *[slice(1)] * len(space))].reshape(-1)
    array = (kernel.entries if isinstance(kernel, Held) else kernel.ids).transpose(numbers.rhs_spec)
    out = scales.convolve(np.broadcast_to(channels, _shape(image)[channel]), type(kernel)(array), groups)
    beside = [1] * len(numbers.out_spec)
    beside[numbers.out_spec[1]] = out.size
    return out.reshape(beside)


def _same(scales: Scales, equation: Equation, inputs: list[Any]) -> Indices:
    return scales.same(*inputs)


_RULES: dict[str, Rule] = {
    **dict.fromkeys(("add", "sub", "add_any", "max", "min", "clamp", "abs", "neg", "real"), _same),
    **dict.fromkeys(("gt", "ge", "lt", "le", "eq", "ne", "sign", "atan2", "is_finite"), _signs),
    "mul": lambda scales, equation, inputs: scales.times(*inputs),
    "div": lambda scales, equation, inputs: scales.times(inputs[0], inputs[1], -1.0),
    "integer_pow": lambda scales, equation, inputs: scales.power(inputs[0], float(equation.params["y"])),
    "square": lambda scales, equation, inputs: scales.power(inputs[0], 2.0),
    "sqrt": lambda scales, equation, inputs: scales.power(inputs[0], 0.5),
    "cbrt": lambda scales, equation, inputs: scales.power(inputs[0], 1 / 3),
    "rsqrt": lambda scales, equation, inputs: scales.power(inputs[0], -0.5),
    "pow": _raised,
    "select_n": _selected,
    **dict.fromkeys(("reduce_sum", "reduce_max", "reduce_min"), _reduced),
    **dict.fromkeys(("argmax", "argmin"), _ranked),
    **dict.fromkeys(("reduce_window_sum", "reduce_window_max", "reduce_window_min"), _pooled),
    **dict.fromkeys(("cumsum", "cummax", "cummin"), _accumulated),
    "dot_general": _product,
    "conv_general_dilated": _convolved,
}
