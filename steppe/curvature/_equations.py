"""A JAX function as the list of its equations, for reading and for evaluating with a change."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core

Equation = Any
# What an equation gives for its inputs: `evaluate`, or something in its place.
Step = Callable[[Equation, list[Any]], Sequence[Any]]

# Calls that only wrap other equations: entered, so that what is inside can be seen.
_BODY = (core.ClosedJaxpr, core.Jaxpr)
_CALLS = frozenset({"jit", "pjit", "closed_call", "core_call", "checkpoint", "remat", "remat2"})


def traced(function: Callable[..., Any], *args: Any) -> core.ClosedJaxpr:
    """The equations of function(*args); shapes suffice for arguments."""
    # A new function every time: JAX remembers the equations of one it has seen.
    closed: core.ClosedJaxpr = jax.make_jaxpr(lambda *args: function(*args))(*args)
    return closed


def shaped(shape: tuple[int, ...], dtype: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)  # type: ignore[no-untyped-call]


def inner(equation: Equation) -> core.ClosedJaxpr | None:
    """What a plain call wraps."""
    if equation.primitive.name not in _CALLS:
        return None
    body = equation.params["jaxpr"] if "jaxpr" in equation.params else equation.params["call_jaxpr"]
    return body if isinstance(body, core.ClosedJaxpr) else core.ClosedJaxpr(body, ())


def bodies(equation: Equation) -> list[core.ClosedJaxpr]:
    """All functions inside an equation: of a call, a loop, a branch, a custom derivative."""
    held = jax.tree.leaves(list(equation.params.values()), is_leaf=lambda a: isinstance(a, _BODY))
    return [a if isinstance(a, core.ClosedJaxpr) else core.ClosedJaxpr(a, ()) for a in held if isinstance(a, _BODY)]


def flat(closed: core.ClosedJaxpr) -> Iterator[Equation]:
    """The equations in the order in which `walk` visits them, those inside plain calls in their place."""
    for equation in closed.jaxpr.eqns:
        body = inner(equation)
        if body is None:
            yield equation
        else:
            yield from flat(body)


def evaluate(equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    bound = equation.primitive.get_bind_params(equation.params)
    # JAX before 0.10 gives the functions inside apart.
    functions, params = bound if isinstance(bound, tuple) else ((), bound)
    result = equation.primitive.bind(*functions, *inputs, **params)
    return result if equation.primitive.multiple_results else [result]


def walk(closed: core.ClosedJaxpr, args: Sequence[Any], step: Step) -> list[Any]:
    """The outputs for `args` (flat), each equation evaluated by `step`.

    `step` may change its list of inputs: the rest of the function then sees the changed values.

    >>> import jax.numpy as jnp
    >>> doubled = lambda equation, inputs: [2 * y for y in evaluate(equation, inputs)]
    >>> float(walk(traced(lambda x: jnp.sin(x) + 1, 0.0), [0.0], doubled)[0])     # 2 (2 sin 0 + 1)
    2.0
    """
    values: dict[Any, Any] = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    values |= zip(closed.jaxpr.invars, args, strict=True)
    for equation in closed.jaxpr.eqns:
        inputs = [v.val if isinstance(v, core.Literal) else values[v] for v in equation.invars]
        body = inner(equation)
        outputs = step(equation, inputs) if body is None else walk(body, inputs, step)
        values |= ((v, a) for v, a in zip(equation.invars, inputs, strict=True) if not isinstance(v, core.Literal))
        values |= zip(equation.outvars, outputs, strict=True)
    return [v.val if isinstance(v, core.Literal) else values[v] for v in closed.jaxpr.outvars]


def unrolled(equation: Equation, inputs: list[Any], step: Step) -> list[Any]:
    """A scan, walked once for each of its rounds; one that carries nothing, a map over examples perhaps, once for all
    of them together."""
    params = equation.params
    fixed, carried = params["num_consts"], params["num_consts"] + params["num_carry"]
    if not params["num_carry"]:
        body = core.jaxpr_as_fun(params["jaxpr"])
        together = jax.vmap(body, [None] * fixed + [0] * (len(inputs) - fixed), axis_size=params["length"])
        return walk(traced(together, *inputs), inputs, step)
    carry, rows = inputs[fixed:carried], []
    order = range(params["length"])
    for i in reversed(order) if params["reverse"] else order:
        outputs = walk(params["jaxpr"], [*inputs[:fixed], *carry, *(a[i] for a in inputs[carried:])], step)
        carry, row = outputs[: params["num_carry"]], outputs[params["num_carry"] :]
        rows.append(row)
    rows = rows[::-1] if params["reverse"] else rows
    return [*carry, *(jnp.stack(column) for column in zip(*rows, strict=True))]
