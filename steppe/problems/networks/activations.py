"""Activations with what the exact formulas need: σ, σ′ and σ″ (almost everywhere)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import jax
import jax.numpy as jnp
from jax import Array

from steppe import check

Elementwise = Callable[[Array], Array]


@dataclass(frozen=True)
class Activation:
    """σ with its derivatives; `leak` is the slope left of 0 where σ is made of two straight pieces, else None."""

    name: str
    value: Elementwise = field(repr=False, compare=False)
    slope: Elementwise = field(repr=False, compare=False)
    curvature: Elementwise = field(repr=False, compare=False)
    leak: float | None = None

    def __call__(self, h: Array) -> Array:
        return self.value(h)

    @property
    def piecewise_linear(self) -> bool:
        return self.leak is not None


def refuse_other(activation: Activation) -> None:
    """Names are for the command line."""
    if not callable(activation):
        remedy = "Pass for example steppe.problems.networks.tanh."
        check.refuse("activation", "an activation of steppe.problems.networks", activation, remedy)


# σ′(0) = 0 as in jax.nn.relu and in the papers' 1[h > 0].
relu = Activation("relu", jax.nn.relu, lambda h: jnp.where(h > 0, 1.0, 0.0).astype(h.dtype), jnp.zeros_like, 0.0)


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
