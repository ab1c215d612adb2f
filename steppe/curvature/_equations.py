"""The equations of a JAX function: reading them, evaluating them with a change, and finding where they have kinks."""

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend import core
from jax.typing import ArrayLike

from steppe._same import bodies, traced

Equation = Any
# The outputs of an equation for given inputs: `evaluate`, or a replacement of it.
Step = Callable[[Equation, list[Any]], Sequence[Any]]

# Calls that only wrap other equations: `walk` enters them.
_CALLS = frozenset({"jit", "pjit", "closed_call", "core_call", "checkpoint", "remat", "remat2"})


def inner(equation: Equation) -> core.ClosedJaxpr | None:
    """The equations inside a plain call; None for any other equation."""
    if equation.primitive.name not in _CALLS:
        return None
    body = equation.params["jaxpr"] if "jaxpr" in equation.params else equation.params["call_jaxpr"]
    return body if isinstance(body, core.ClosedJaxpr) else core.ClosedJaxpr(body, ())


def flat(closed: core.ClosedJaxpr) -> Iterator[Equation]:
    """The equations in the order in which `walk` visits them; a plain call is replaced by its equations."""
    for equation in closed.jaxpr.eqns:
        body = inner(equation)
        if body is None:
            yield equation
        else:
            yield from flat(body)


def evaluate(equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    bound = equation.primitive.get_bind_params(equation.params)
    # JAX before 0.10 returns the inner functions separately.
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
    """The outputs of a scan, walked round by round. A scan without carry, such as a map over examples, is walked once
    for all rounds together."""
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


# Kinks come from relu, max, min, abs, clamp and where(a > b, …).

_COMPARED = frozenset({"max", "min", "gt", "ge", "lt", "le"})
_CUSTOM = frozenset({"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"})


class Site(eqx.Module):
    """An equation that has a kink in one of its inputs, a layer of pre-activations."""

    name: str = eqx.field(static=True)
    operand: int = eqx.field(static=True)  # the number of that input
    margin: Array  # its distance to the kink, signed if the equation tells the sides apart
    height: Array  # grows as fast as the pre-activation, and is constant at the kink


def sites(function: Callable[..., Array], *args: Any) -> list[Site]:
    """All sites, in the order of evaluation.

    >>> (site,) = sites(lambda h: jax.nn.relu(h - 1.0), jnp.array([3.0, 1.0]))
    >>> site.name, site.margin.tolist()
    ('relu', [2.0, 0.0])
    """
    found: list[Site] = []

    def still(site: Site) -> Array:
        found.append(site)
        return jnp.zeros_like(site.height)

    _moved(function, args, still)
    return found


def shifted(function: Callable[..., Array], shifts: Sequence[Array], *args: Any) -> Array:
    """function(*args) with the pre-activation of each site moved by its shift."""
    left = iter(shifts)
    return _moved(function, args, lambda site: next(left))


def tolerance(size: float, dtype: Any) -> float:
    """The distance from a kink that rounding can cause: a pre-activation is a sum, off by up to 16 ulp of its terms
    (steppe.linalg._operator), and `size` stands for their size. A `size` of 0 counts as 1: any step crosses."""
    return 16.0 * float(np.finfo(dtype).eps) * (size or 1.0)


def _moved(function: Callable[..., Array], args: Sequence[Any], shift: Callable[[Site], Array]) -> Array:
    # One site per comparison: jax.nn.elu compares h > 0 twice. The inputs are kept so that no id is used again.
    seen: dict[tuple[object, ...], list[Any]] = {}

    def move(equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        if _comparison(equation, inputs) not in seen:
            for site in list(_sites(equation, inputs)):
                inputs[site.operand] = inputs[site.operand] + shift(site)
                seen[_comparison(equation, inputs)] = list(inputs)
        return evaluate(equation, inputs)

    def enter(equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        return unrolled(equation, inputs, enter) if equation.primitive.name == "scan" else move(equation, inputs)

    (result,) = walk(traced(function, *args), jax.tree.leaves(args), enter)
    moved: Array = result
    return moved


def _comparison(equation: Equation, inputs: list[Any]) -> tuple[object, ...]:
    return equation.primitive.name, *(float(a) if _is_number(a) else id(a) for a in inputs)


def _is_number(a: Any) -> bool:
    """A known number: no tracer, no random key."""
    return not isinstance(a, jax.core.Tracer) and jnp.ndim(a) == 0 and jnp.issubdtype(jnp.result_type(a), jnp.number)


def _sites(equation: Equation, inputs: list[Any]) -> Iterator[Site]:
    name = equation.primitive.name
    if name in _COMPARED and _is_layer(inputs[0] - inputs[1] if _is_real(inputs[0]) else None):
        margin = inputs[0] - inputs[1]
        yield Site(name, 0, margin, margin) if _is_layer(inputs[0]) else Site(name, 1, margin, -margin)
    elif name == "abs" and _is_layer(inputs[0]):
        yield Site(name, 0, inputs[0], inputs[0])
    elif name == "clamp" and _is_layer(inputs[1]):
        low, x, high = inputs
        yield Site(name, 1, jnp.minimum(jnp.abs(x - low), jnp.abs(x - high)), x)
    elif name in _CUSTOM:
        # Autodiff uses the custom derivative and not the equations inside: they show the kink, the input is moved.
        yield from _inside(equation, inputs)


def _inside(equation: Equation, inputs: list[Any]) -> Iterator[Site]:
    layers = [k for k, a in enumerate(inputs) if _is_layer(a)]
    (body,) = bodies(equation)[:1] or (None,)
    if body is None or len(layers) != 1:
        return
    found: list[Array] = []

    def look(inner: Equation, values: list[Any]) -> Sequence[Any]:
        found.extend(site.margin for site in _sites(inner, values))
        return evaluate(inner, values)

    walk(body, inputs, look)
    height = inputs[layers[0]]
    margins = [jnp.abs(m) if len(found) > 1 else m for m in found if m.shape == jnp.shape(height)]
    if margins:
        name = next((str(e.params["name"]) for e in body.jaxpr.eqns if "name" in e.params), "custom")
        yield Site(name, layers[0], reduce(jnp.minimum, margins), height)


def _is_real(a: ArrayLike) -> bool:
    return jnp.issubdtype(jnp.result_type(a), jnp.floating)


def _is_layer(a: Any) -> bool:
    return a is not None and _is_real(a) and jnp.ndim(a) > 0
