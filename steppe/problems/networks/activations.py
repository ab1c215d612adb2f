"""Activations with what the exact formulas need: σ, σ′ and σ″ (almost everywhere)."""

from collections.abc import Callable
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jax import Array

Elementwise = Callable[[Array], Array]


@dataclass(frozen=True)
class Activation:
    name: str
    value: Elementwise = field(repr=False, compare=False)
    slope: Elementwise = field(repr=False, compare=False)
    curvature: Elementwise = field(repr=False, compare=False)

    def __call__(self, h: Array) -> Array:
        return self.value(h)


# σ′(0) = 0 as in jax.nn.relu and in the papers' 1[h > 0].
relu = Activation("relu", jax.nn.relu, lambda h: jnp.where(h > 0, 1.0, 0.0).astype(h.dtype), jnp.zeros_like)
