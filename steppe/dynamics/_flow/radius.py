"""The spectral radius of ∇²L along the flow, by a few Lanczos steps that start from the last leading vector."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

# A product ∇²L v differentiates a gradient, which costs twice a gradient.
GRADIENTS_PER_PRODUCT = 2

# Lanczos stops at this relative change. The radius changes by as much in a step or two: more digits would be wasted.
SETTLED = 0.03
MOST_PRODUCTS = 12

# The radius is measured again after PATIENCE gradients, twenty times the usual cost of a measurement, or once it is
# expected to have grown by the share GROWN.
PATIENCE, GROWN = 80, 0.1

# The expected growth until the end of a step is at most this factor.
MOST_GROWTH = 1.5


# The basis, ∇²L in it, its largest |eigenvalue| now and before, and the products so far.
Krylov = tuple[Array, Array, Array, Array, Array]


class Radius(NamedTuple):
    """The last measurement of |λ|_max of ∇²L: its time, its growth, its vector, and the gradients since then."""

    value: Array
    time: Array
    growth: Array  # d log |λ|_max / dt
    vector: Array
    since: Array

    def outdated(self, time: Array) -> Array:
        return (self.since >= PATIENCE) | (self.at(time) > (1 + GROWN) * self.value)

    def at(self, time: Array) -> Array:
        """The expected radius at a later time. Too small, it makes a step unstable; too large, it costs little."""
        grown = jnp.exp(jnp.maximum(self.growth, 0) * (time - self.time))
        return self.value * jnp.minimum(grown, MOST_GROWTH)


def unmeasured(g: Array) -> Radius:
    """Outdated at once. Its vector mixes the gradient, which may be orthogonal to the leading one, with noise."""
    noise = jax.random.normal(jax.random.key(0), g.shape, g.dtype)
    real = jnp.zeros((), dtype=float)
    return Radius(real, real, real, _both(g, noise), jnp.asarray(PATIENCE, dtype=int))


def measure(
    gradient: Callable[[Array], Array], w: Array, time: Array, stiff: Array, last: Radius
) -> tuple[Radius, Array]:
    """The radius at w, and the gradients it cost. New leading vectors probably have a part along `stiff`."""
    value, v, products = _leader(lambda v: jax.jvp(gradient, (w,), (v,))[1], _both(last.vector, stiff))
    usable = jnp.isfinite(value) & (value > 0)
    value = jnp.where(usable, value, last.value.astype(w.dtype)).astype(last.value.dtype)
    grows = (last.value > 0) & (time > last.time)
    rate = jnp.log(value / jnp.where(grows, last.value, value)) / jnp.where(grows, time - last.time, 1)
    vector = jnp.where(usable, v, last.vector)
    growth = jnp.where(grows & usable, rate, last.growth)
    return Radius(value, time, growth, vector, jnp.zeros_like(last.since)), GRADIENTS_PER_PRODUCT * products


def _leader(product: Callable[[Array], Array], start: Array) -> tuple[Array, Array, Array]:
    """The largest |Ritz value| of Lanczos, its vector, and the products it cost."""
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
    """A unit vector with a part along both; the sign keeps them from cancelling."""
    return _unit(_unit(a) + jnp.where(a @ b < 0, -1, 1) * _unit(b))


def _beyond(basis: Array, rest: Array) -> Array:
    """The part of `rest` that is orthogonal to the basis, 0 if that part is rounding.

    Otherwise Lanczos on a small problem, whose space is exhausted, would count the same direction several times.
    """
    again = rest - (basis @ rest) @ basis
    return jnp.where(jnp.sum(again**2) > 0.25 * jnp.sum(rest**2), again, 0)


def _unit(v: Array) -> Array:
    norm = jnp.sqrt(jnp.sum(v**2))
    return v / jnp.where(norm > 0, norm, 1)
