"""Activations σ with their derivatives: `Activation` for networks, and `Homogeneous` for the theory of multi-index."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check
from steppe._guard import guard

__all__ = [
    "Activation",
    "Homogeneous",
    "leaky",
    "leaky_relu",
    "linear",
    "monomial",
    "quadratic",
    "rectifier",
    "relu",
    "relu_power",
    "softplus",
    "tanh",
]

Elementwise = Callable[[Array], Array]


def __dir__() -> list[str]:
    return list(__all__)


@dataclass(frozen=True)
class Activation:
    """σ with σ′ (`slope`) and σ″ (`curvature`, almost everywhere).

    `leak` is the slope left of 0 if σ consists of two straight pieces that meet at 0, else None.
    """

    name: str
    value: Elementwise = field(repr=False, compare=False)
    slope: Elementwise = field(repr=False, compare=False)
    curvature: Elementwise = field(repr=False, compare=False)
    leak: float | None = None

    @guard
    def __call__(self, h: Array) -> Array:
        return self.value(h)

    @property
    def piecewise_linear(self) -> bool:
        return self.leak is not None


def check_activation(activation: Activation) -> None:
    """Raises for the name of an activation: names are for the command line."""
    if not callable(activation):
        remedy = "Pass for example steppe.activations.tanh."
        check.refuse("activation", "an activation of steppe.activations", activation, remedy)


# σ′(0) = 0 as in jax.nn.relu and in the papers' 1[h > 0].
relu = Activation("relu", jax.nn.relu, lambda h: jnp.where(h > 0, 1.0, 0.0).astype(h.dtype), jnp.zeros_like, 0.0)


@guard
@cache  # one object for each slope, so that equal problems share compiled code
def leaky_relu(leak: float = 0.01) -> Activation:
    """h where h > 0, else leak·h; PyTorch's default leak is 0.01.

    >>> leaky_relu(0.1)(jnp.array([2.0, -2.0])).tolist()
    [2.0, -0.2...]
    """
    leak = check.number("leak", leak)
    return Activation(
        "leaky_relu",
        lambda h: jnp.where(h > 0, h, leak * h),
        lambda h: jnp.where(h > 0, 1.0, leak).astype(h.dtype),
        jnp.zeros_like,
        leak,
    )


def _sigmoid_slope(h: Array) -> Array:
    return jax.nn.sigmoid(h) * jax.nn.sigmoid(-h)


def _tanh_slope(h: Array) -> Array:
    return 1 - jnp.tanh(h) ** 2


softplus = Activation("softplus", jax.nn.softplus, jax.nn.sigmoid, _sigmoid_slope)
tanh = Activation("tanh", jnp.tanh, _tanh_slope, lambda h: -2 * jnp.tanh(h) * _tanh_slope(h))


@dataclass(frozen=True)
class Homogeneous:
    """σ(z) = positive · z^degree for z > 0 and negative · |z|^degree for z < 0, degree ≥ 1: the class of multi-index.

    >>> Homogeneous(1.0, 1.0, 2)(np.array([3.0, -2.0])).tolist(), linear(np.array([3.0, -2.0])).tolist()
    ([9.0, 4.0], [3.0, -2.0])
    """

    positive: float
    negative: float
    degree: float

    def __post_init__(self) -> None:
        check.number("positive", self.positive)
        check.number("negative", self.negative)
        check.number("degree", self.degree, minimum=1.0, remedy="Below degree 1 the slope at 0 is infinite.")

    @guard
    def __call__(self, z: Any) -> Any:
        z = np.asarray(z, dtype=float)
        return np.where(z > 0, self.positive, self.negative) * np.abs(z) ** self.degree

    def slope(self, z: Any) -> Any:
        """σ′(z), 0 at 0."""
        z = np.asarray(z, dtype=float)
        side = np.where(z > 0, self.positive, np.where(z < 0, -self.negative, 0.0))
        return self.degree * side * np.abs(z) ** (self.degree - 1)

    def power(self, k: int) -> "Homogeneous":
        """σ^k, of degree kc."""
        return Homogeneous(self.positive**k, self.negative**k, self.degree * k)

    @property
    def activation(self) -> Activation:
        """The same function as an `Activation`, for networks."""
        return _activation(self.positive, self.negative, self.degree)


@cache  # one object for each function, so that equal problems share compiled code
def _activation(positive: float, negative: float, c: float) -> Activation:
    if c == 1 and positive == 1:
        return relu if negative == 0 else leaky_relu(-negative)

    name = f"homogeneous({positive:g}, {negative:g}, {c:g})"
    if c >= 2 and float(c).is_integer() and negative == positive * (-1) ** int(c):
        k = int(c)  # a monomial, without sides
        return Activation(
            name,
            lambda z: positive * z**k,
            lambda z: k * positive * z ** (k - 1),
            lambda z: k * (k - 1) * positive * z ** (k - 2),
        )

    def side(z: Array, left: float) -> Array:
        return jnp.where(z > 0, positive, jnp.where(z < 0, left, 0.0)).astype(z.dtype)

    def size(z: Array, power: float) -> Array:
        # At z = 0 the derivative of |z|^p is NaN for p < 1, and 0^0 is 1: z = 0 becomes 1, and side(0) = 0 cancels it.
        return jnp.abs(jnp.where(z == 0, 1.0, z)) ** power

    return Activation(
        name,
        lambda z: side(z, negative) * size(z, c),
        lambda z: c * side(z, -negative) * size(z, c - 1),
        lambda z: c * (c - 1) * side(z, negative) * size(z, c - 2),
    )


def relu_power(c: float) -> Homogeneous:
    """relu(z)^c."""
    return Homogeneous(1.0, 0.0, c)


def monomial(c: int) -> Homogeneous:
    """z^c."""
    c = check.integer("c", c, minimum=1)
    return Homogeneous(1.0, 1.0 if c % 2 == 0 else -1.0, c)


def leaky(leak: float) -> Homogeneous:
    """z for z > 0 and leak · z for z < 0."""
    return Homogeneous(1.0, -check.number("leak", leak), 1)


rectifier = relu_power(1)
quadratic = monomial(2)
linear = monomial(1)
