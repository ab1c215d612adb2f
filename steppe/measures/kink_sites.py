"""Where a function bends without a slope: relu, max, min, abs, clamp, and where(a > b, …)."""

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.measures.equations import Equation, bodies, evaluate, traced, unrolled, walk

_COMPARED = frozenset({"max", "min", "gt", "ge", "lt", "le"})
_CUSTOM = frozenset({"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"})


class Site(eqx.Module):
    """One bend of a function: a layer of pre-activations, one of the inputs of an equation."""

    name: str = eqx.field(static=True)
    operand: int = eqx.field(static=True)  # which input
    margin: Array  # its distance to the bend, signed where it has a sign
    height: Array  # what grows with the pre-activation as fast, and is a constant at the bend


def sites(function: Callable[..., Array], *args: Any) -> list[Site]:
    """All of them, in the order of evaluation.

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
    """function(*args) with each site's pre-activation moved by its shift."""
    left = iter(shifts)
    return _moved(function, args, lambda site: next(left))


def _moved(function: Callable[..., Array], args: Sequence[Any], shift: Callable[[Site], Array]) -> Array:
    # By the question asked: jax.nn.elu asks h > 0 twice, and is one site. Kept, so that no other object gets its id.
    asked: dict[tuple[object, ...], list[Any]] = {}

    def move(equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        if _question(equation, inputs) not in asked:
            for site in list(_sites(equation, inputs)):
                inputs[site.operand] = inputs[site.operand] + shift(site)
                asked[_question(equation, inputs)] = list(inputs)
        return evaluate(equation, inputs)

    def enter(equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        return unrolled(equation, inputs, enter) if equation.primitive.name == "scan" else move(equation, inputs)

    (result,) = walk(traced(function, *args), jax.tree.leaves(args), enter)
    moved: Array = result
    return moved


def _question(equation: Equation, inputs: list[Any]) -> tuple[object, ...]:
    return equation.primitive.name, *(float(a) if _is_number(a) else id(a) for a in inputs)


def _is_number(a: Any) -> bool:
    """A known number: no tracer, and no key of random numbers."""
    return not isinstance(a, jax.core.Tracer) and jnp.ndim(a) == 0 and jnp.issubdtype(jnp.result_type(a), jnp.number)


def tolerance(size: float, dtype: Any) -> float:
    """The distance from a kink that rounding can make: a pre-activation is a sum, off by up to 16 ulp of its terms
    (steppe.linalg.operator), and `size` stands for the size of those. Zero counts as one: any step crosses."""
    return 16.0 * float(np.finfo(dtype).eps) * (size or 1.0)


def _sites(equation: Equation, inputs: list[Any]) -> Iterator[Site]:
    name = equation.primitive.name
    if name in _COMPARED and _is_layer(inputs[0] - inputs[1] if _real(inputs[0]) else None):
        margin = inputs[0] - inputs[1]
        yield Site(name, 0, margin, margin) if _is_layer(inputs[0]) else Site(name, 1, margin, -margin)
    elif name == "abs" and _is_layer(inputs[0]):
        yield Site(name, 0, inputs[0], inputs[0])
    elif name == "clamp" and _is_layer(inputs[1]):
        low, x, high = inputs
        yield Site(name, 1, jnp.minimum(jnp.abs(x - low), jnp.abs(x - high)), x)
    elif name in _CUSTOM:
        # Its own derivative counts, not that of the equations inside: look there, and move its input.
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
    alike = [jnp.abs(m) if len(found) > 1 else m for m in found if m.shape == jnp.shape(height)]
    if alike:
        name = next((str(e.params["name"]) for e in body.jaxpr.eqns if "name" in e.params), "custom")
        yield Site(name, layers[0], reduce(jnp.minimum, alike), height)


def _real(a: ArrayLike) -> bool:
    return jnp.issubdtype(jnp.result_type(a), jnp.floating)


def _is_layer(a: Any) -> bool:
    return a is not None and _real(a) and jnp.ndim(a) > 0
