"""Where a function bends without a slope: relu, max, min, abs, clamp, and where(a > b, …)."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe.measures.equations import Equation, Step, bodies, evaluate, traced, unrolled, walk

_COMPARED = frozenset({"max", "min", "gt", "ge", "lt", "le"})
_CUSTOM = frozenset({"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"})


def margins(function: Callable[..., Array], *args: Any) -> tuple[list[str], list[Array]]:
    """For each site, in the order of evaluation, its name and the distance to the bend (signed where it has a sign).

    >>> names, found = margins(lambda h: jax.nn.relu(h - 1.0), jnp.array([3.0, 1.0]))
    >>> names, found[0].tolist()
    (['relu'], [2.0, 0.0])
    """
    names: list[str] = []
    found: list[Array] = []

    def look(equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        for name, _, margin in _sites(equation, inputs):
            names.append(name)
            found.append(margin)
        return evaluate(equation, inputs)

    _walked(function, args, look)
    return names, found


def shifted(function: Callable[..., Array], shifts: Sequence[Array], *args: Any) -> Array:
    """function(*args) with each site's pre-activation moved by its shift."""
    left = iter(shifts)

    def move(equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        for _, operand, _ in list(_sites(equation, inputs)):
            inputs[operand] = inputs[operand] + next(left)
        return evaluate(equation, inputs)

    (result,) = _walked(function, args, move)
    return result


def jumps(loss: Callable[[list[Array]], Array], shifts: list[Array]) -> tuple[list[Array], list[Array]]:
    """The change of ∂loss/∂shift from −shifts to +shifts, and its size: of the order of the shift where the loss is
    smooth, of the order of the size where it has a kink between the two."""
    above, below = jax.grad(loss)(shifts), jax.grad(loss)([-s for s in shifts])
    changes = [jnp.abs(a - b) for a, b in zip(above, below, strict=True)]
    return changes, [jnp.maximum(jnp.abs(a), jnp.abs(b)) for a, b in zip(above, below, strict=True)]


def tolerance(size: float, dtype: Any) -> float:
    """The distance from a kink that rounding can make: a pre-activation is a sum, off by up to 16 ulp of its terms
    (steppe.linalg.operator), and `size` stands for the size of those. Zero counts as one: any step crosses."""
    return 16.0 * float(np.finfo(dtype).eps) * (size or 1.0)


def is_jump(change: Array, size: Array) -> Array:
    """A smooth slope changes by about the step taken across, some 1e2 ulp; a kink by more than half of the digits."""
    return change > float(np.finfo(change.dtype).eps) ** 0.5 * jnp.max(size)


def _walked(function: Callable[..., Array], args: Sequence[Any], step: Step) -> list[Any]:
    def enter(equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        return unrolled(equation, inputs, enter) if equation.primitive.name == "scan" else step(equation, inputs)

    return walk(traced(function, *args), jax.tree.leaves(args), enter)


def _sites(equation: Equation, inputs: list[Any]) -> Iterator[tuple[str, int, Array]]:
    """(name, which input is the pre-activation, its distance to the bend)."""
    name = equation.primitive.name
    if name in _COMPARED and _is_layer(inputs[0] - inputs[1] if _real(inputs[0]) else None):
        yield name, 0 if _is_layer(inputs[0]) else 1, inputs[0] - inputs[1]
    elif name == "abs" and _is_layer(inputs[0]):
        yield name, 0, inputs[0]
    elif name == "clamp" and _is_layer(inputs[1]):
        low, x, high = inputs
        yield name, 1, jnp.minimum(jnp.abs(x - low), jnp.abs(x - high))
    elif name in _CUSTOM:
        # Its own derivative counts, not that of the equations inside: look there, and move its input.
        yield from _inside(equation, inputs)


def _inside(equation: Equation, inputs: list[Any]) -> Iterator[tuple[str, int, Array]]:
    layers = [k for k, a in enumerate(inputs) if _is_layer(a)]
    (body,) = bodies(equation)[:1] or (None,)
    if body is None or len(layers) != 1:
        return
    found: list[Array] = []

    def look(inner: Equation, values: list[Any]) -> Sequence[Any]:
        found.extend(margin for _, _, margin in _sites(inner, values))
        return evaluate(inner, values)

    walk(body, inputs, look)
    shape = jnp.shape(inputs[layers[0]])
    alike = [jnp.abs(m) if len(found) > 1 else m for m in found if m.shape == shape]
    if alike:
        nearest = alike[0]
        for other in alike[1:]:
            nearest = jnp.minimum(nearest, other)
        yield next((str(e.params["name"]) for e in body.jaxpr.eqns if "name" in e.params), "custom"), layers[0], nearest


def _real(a: ArrayLike) -> bool:
    return jnp.issubdtype(jnp.result_type(a), jnp.floating)


def _is_layer(a: Any) -> bool:
    return a is not None and _real(a) and jnp.ndim(a) > 0
