"""Whether a function of JAX is one function: it computes the same at every call."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend import core

from steppe import check

_BODY = (core.ClosedJaxpr, core.Jaxpr)


def traced(function: Callable[..., Any], *args: Any) -> core.ClosedJaxpr:
    """The equations of function(*args); the arguments may be shapes."""
    return _traced(function, *args)[0]


def _traced(function: Callable[..., Any], *args: Any) -> tuple[core.ClosedJaxpr, Any]:
    # A new function for every call: JAX caches the equations of a function it has seen.
    return jax.make_jaxpr(lambda *args: function(*args), return_shape=True)(*args)


def shaped(shape: tuple[int, ...], dtype: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)  # type: ignore[no-untyped-call]


def bodies(equation: Any) -> list[core.ClosedJaxpr]:
    """All functions inside an equation: of a call, a loop, a branch, a custom derivative."""
    held = jax.tree.leaves(list(equation.params.values()), is_leaf=lambda a: isinstance(a, _BODY))
    return [a if isinstance(a, core.ClosedJaxpr) else core.ClosedJaxpr(a, ()) for a in held if isinstance(a, _BODY)]


class Content(NamedTuple):
    """The names of all equations of a function, all the numbers in them, and the shape of what it returns."""

    names: list[str]
    numbers: list[Any]
    returned: Any

    @property
    def leaves_jax(self) -> bool:
        return not {"pure_callback", "io_callback"}.isdisjoint(self.names)

    def expected(self, other: "Content") -> None:
        """Refuses a network that was `self` and is `other` now."""
        if self.names != other.names or not all(map(_equal, self.numbers, other.numbers)):
            refuse_randomness("another function at a later call")


@lru_cache(maxsize=256)  # a network is checked once, not at every step of a trajectory
def content(predict: Callable[..., Any], unravel: Any, structure: Any, shapes: tuple[Any, ...]) -> Content:
    """What predict computes, when it is traced for the first time."""
    return _read(predict, unravel, structure, shapes)


@lru_cache(maxsize=256)
def checked(predict: Callable[..., Any], unravel: Any, structure: Any, shapes: tuple[Any, ...]) -> Content:
    """The same, traced once more: a network that draws from its own generator differs, and is refused."""
    first = content(predict, unravel, structure, shapes)
    first.expected(_read(predict, unravel, structure, shapes))
    return first


def _read(predict: Callable[..., Any], unravel: Any, structure: Any, shapes: tuple[Any, ...]) -> Content:
    params = jax.eval_shape(unravel, shaped((unravel.size,), jnp.result_type(*unravel.dtypes)))
    x = jax.tree.unflatten(structure, [shaped(*s) for s in shapes])
    closed, returned = _traced(predict, params, x)
    found = Content([], [], returned)
    _read_into(found, closed)
    return found


def _read_into(found: Content, closed: core.ClosedJaxpr) -> None:
    found.numbers.extend(closed.consts)
    for equation in closed.jaxpr.eqns:
        found.names.append(equation.primitive.name)
        found.numbers.extend(v.val for v in equation.invars if isinstance(v, core.Literal))
        for body in bodies(equation):
            _read_into(found, body)


def refuse_randomness(seen: str) -> NoReturn:
    remedy = "Fix its randomness: give it a constant key, or switch dropout off for measuring."
    check.refuse("predict", "the same function of (params, x) at every call", seen, remedy)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, Array) and jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
        a, b = jax.random.key_data(a), jax.random.key_data(b)
    return np.array_equal(a, b, equal_nan=True)
