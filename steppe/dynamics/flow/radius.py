"""The spectral radius of ∇²L along the flow, by a power iteration that goes on from the vector of the time before."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

# A product ∇²L v differentiates a gradient once more: twice the work of one.
GRADIENTS_PER_PRODUCT = 2

# The iteration stops at this relative change; more precision would be lost again within a step.
SETTLED = 0.02
MOST_PRODUCTS = 50

# Steps between two estimates: more where the radius hardly changes, fewer where it does.
LONGEST_INTERVAL = 25
CALM, MOVING = 0.03, 0.1


class Radius(NamedTuple):
    """|λ|_max of ∇²L as last measured, its vector, the steps since then and the steps until the next time."""

    value: Array
    vector: Array
    age: Array
    interval: Array

    @property
    def due(self) -> Array:
        return self.age >= self.interval


def first_vector(g: Array) -> Array:
    """Neither the gradient alone, which may be orthogonal to the leading eigenvector, nor noise alone."""
    noise = jax.random.normal(jax.random.key(0), g.shape, g.dtype)
    return _unit(_unit(g) + _unit(noise))


def measure(gradient: Callable[[Array], Array], w: Array, last: Radius) -> tuple[Radius, Array]:
    """The radius at w, and the gradients it took."""

    def body(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        v, value, _, products = carry
        _, product = jax.jvp(gradient, (w,), (v,))
        return _unit(product), jnp.sqrt(jnp.sum(product**2)), value, products + 1

    def unsettled(carry: tuple[Array, Array, Array, Array]) -> Array:
        _, value, before, products = carry
        return (jnp.abs(value - before) > SETTLED * value) & (products < MOST_PRODUCTS)

    value = last.value.astype(w.dtype)
    # At least one product: as if the value before had been another one.
    start = (last.vector, value, 2 * value + 1, jnp.asarray(0, dtype=int))
    v, value, _, products = jax.lax.while_loop(unsettled, body, start)
    change = jnp.abs(value - last.value) / jnp.maximum(value, np.finfo(w.dtype).tiny)
    interval = jnp.where(
        change < CALM, 2 * last.interval, jnp.where(change > MOVING, last.interval // 2, last.interval)
    )
    interval = jnp.clip(interval, 1, LONGEST_INTERVAL)
    usable = jnp.isfinite(value)
    radius = Radius(
        jnp.where(usable, value, last.value).astype(last.value.dtype),
        jnp.where(usable & (value > 0), v, last.vector),
        jnp.zeros_like(last.age),
        interval,
    )
    return radius, GRADIENTS_PER_PRODUCT * products


def _unit(v: Array) -> Array:
    norm = jnp.sqrt(jnp.sum(v**2))
    return v / jnp.where(norm > 0, norm, 1)
