"""Activations of two monomials, σ(z) = α₊ z^c for z > 0 and α₋ |z|^c for z < 0: all that multi-index allows.

A `TwoLayer` takes `.activation`; `flatten` finds its degree. Called on numpy arrays for what needs no derivative.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check
from steppe.problems.networks.activations import Activation, leaky_relu, relu


@dataclass(frozen=True)
class Homogeneous:
    """σ(z) = positive · z^degree for z > 0 and negative · |z|^degree for z < 0, degree ≥ 1.

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
        """The same for networks, with its derivatives."""
        return _activation(self.positive, self.negative, self.degree)


@cache  # one object for each, so that equal problems share compiled code
def _activation(positive: float, negative: float, c: float) -> Activation:
    if c == 1 and positive == 1:
        return relu if negative == 0 else leaky_relu(-negative)

    def side(z: Array, left: float) -> Array:
        return jnp.where(z > 0, positive, jnp.where(z < 0, left, 0.0)).astype(z.dtype)

    def size(z: Array, power: float) -> Array:
        # The derivative of |z|^p at 0 is NaN for p < 1, and 0^0 is 1: a zero is moved away and meets side(0) = 0.
        return jnp.abs(jnp.where(z == 0, 1.0, z)) ** power

    return Activation(
        f"homogeneous({positive:g}, {negative:g}, {c:g})",
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
    """LeakyReLU: z for z > 0, leak · z for z < 0."""
    return Homogeneous(1.0, -check.number("leak", leak), 1)


rectifier = relu_power(1)
quadratic = monomial(2)
linear = monomial(1)
