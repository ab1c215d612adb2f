"""The spectral radius of ∇²L along the flow, by a few Lanczos steps that go on from the vector of the time before."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

# A product ∇²L v differentiates a gradient once more: twice the work of one.
GRADIENTS_PER_PRODUCT = 2

# Lanczos stops at this relative change; more precision would be lost again within a step.
SETTLED = 0.03
MOST_PRODUCTS = 12

# The radius is measured again after so many gradients, twenty times what measuring mostly takes, or as soon as it is
# expected to have grown by this share.
PATIENCE, GROWN = 80, 0.1

# No more growth than this is expected until the end of a step, whatever the growth so far.
MOST_GROWTH = 1.5


# The basis, ∇²L in it, its largest |eigenvalue| now and before, and the products so far.
Krylov = tuple[Array, Array, Array, Array, Array]


class Radius(NamedTuple):
    """|λ|_max of ∇²L as last measured, when and how fast it grew, its vector, and the gradients taken since."""

    value: Array
    time: Array
    growth: Array  # d log |λ|_max / dt
    vector: Array
    since: Array

    def due(self, time: Array) -> Array:
        return (self.since >= PATIENCE) | (self.at(time) > (1 + GROWN) * self.value)

    def at(self, time: Array) -> Array:
        """What it will be at a time to come: a radius too small makes a step unstable, one too large costs little."""
        grown = jnp.exp(jnp.maximum(self.growth, 0) * (time - self.time))
        return self.value * jnp.minimum(grown, MOST_GROWTH)


def unmeasured(g: Array) -> Radius:
    """Due at once. Neither the gradient alone, which may be orthogonal to the leading eigenvector, nor noise alone."""
    noise = jax.random.normal(jax.random.key(0), g.shape, g.dtype)
    real = jnp.zeros((), dtype=float)
    return Radius(real, real, real, _both(g, noise), jnp.asarray(PATIENCE, dtype=int))


def measure(
    gradient: Callable[[Array], Array], w: Array, time: Array, stiff: Array, last: Radius
) -> tuple[Radius, Array]:
    """The radius at w, and the gradients it took; `stiff` is a vector in which new leaders are likely to be seen."""
    value, v, products = _leader(lambda v: jax.jvp(gradient, (w,), (v,))[1], _both(last.vector, stiff))
    usable = jnp.isfinite(value) & (value > 0)
    value = jnp.where(usable, value, last.value.astype(w.dtype)).astype(last.value.dtype)
    grows = (last.value > 0) & (time > last.time)
    rate = jnp.log(value / jnp.where(grows, last.value, value)) / jnp.where(grows, time - last.time, 1)
    vector = jnp.where(usable, v, last.vector)
    growth = jnp.where(grows & usable, rate, last.growth)
    return Radius(value, time, growth, vector, jnp.zeros_like(last.since)), GRADIENTS_PER_PRODUCT * products


def _leader(product: Callable[[Array], Array], start: Array) -> tuple[Array, Array, Array]:
    """The largest |Ritz value|, its vector, and the products it took (Lanczos)."""
    begin = jnp.zeros((MOST_PRODUCTS + 1, start.size), start.dtype).at[0].set(start)
    T = jnp.zeros((MOST_PRODUCTS, MOST_PRODUCTS), start.dtype)
    nothing = jnp.zeros((), start.dtype)

    def body(carry: Krylov) -> Krylov:
        basis, T, value, _, j = carry
        u = product(basis[j])
        column = basis[:-1] @ u
        T = T.at[:, j].set(column).at[j, :].set(column)
        basis = basis.at[j + 1].set(_unit(_beyond(basis[:-1], u - column @ basis[:-1])))
        return basis, T, jnp.max(jnp.abs(jnp.linalg.eigvalsh(T))), value, j + 1

    def unsettled(carry: Krylov) -> Array:
        *_, value, before, j = carry
        return (j < 2) | ((value - before > SETTLED * value) & (j < MOST_PRODUCTS))

    basis, T, value, _, j = jax.lax.while_loop(unsettled, body, (begin, T, nothing, nothing, jnp.asarray(0, dtype=int)))
    values, vectors = jnp.linalg.eigh(T)
    return value, _unit(vectors[:, jnp.argmax(jnp.abs(values))] @ basis[:-1]), j


def _both(a: Array, b: Array) -> Array:
    """A unit vector in which both directions are seen; of opposite signs they could cancel."""
    return _unit(_unit(a) + jnp.where(a @ b < 0, -1, 1) * _unit(b))


def _beyond(basis: Array, rest: Array) -> Array:
    """What of the rest is orthogonal to the basis; nothing where it was rounding of a vector within its span.

    Without this a small problem, whose space is exhausted, would count the same direction several times.
    """
    again = rest - (basis @ rest) @ basis
    return jnp.where(jnp.sum(again**2) > 0.25 * jnp.sum(rest**2), again, 0)


def _unit(v: Array) -> Array:
    norm = jnp.sqrt(jnp.sum(v**2))
    return v / jnp.where(norm > 0, norm, 1)
