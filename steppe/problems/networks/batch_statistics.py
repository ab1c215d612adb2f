"""Batch normalisation inside deep networks: statistics over all examples (and pixels), differentiated through."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.problems.networks.first_layer import Params

EPS = 1e-5  # PyTorch's

# How a layer (its γ and β) is normalised, and a network that is told so.
Normalise = Callable[[Params, Array], Array]
Forward = Callable[[Any, Array, Normalise], Array]
Moments = tuple[Array, Array]

# Examples that go through a trained network at a time.
_ROWS = 500


def init(channels: int, dtype: Any) -> Params:
    """γ = 1 and β = 0."""
    return {"gamma": np.ones(channels, dtype), "beta": np.zeros(channels, dtype)}


def apply(params: Params, h: Array) -> Array:
    """γ (h − μ)/√(var + eps) + β, mean and variance over all axes but the last.

    >>> apply(init(1, np.float64), jnp.array([[1.0], [3.0]])).ravel().round(3).tolist()
    [-1.0, 1.0]
    """
    return _normalised(params, h, _moments(h))


def _moments(h: Array) -> Moments:
    axes = tuple(range(h.ndim - 1))
    mean = jnp.mean(h, axis=axes, keepdims=True)
    return mean, jnp.mean((h - mean) ** 2, axis=axes, keepdims=True)


def _normalised(params: Params, h: Array, moments: Moments) -> Array:
    along, (mean, variance) = (1,) * (h.ndim - 1) + (-1,), moments
    scale = params["gamma"].reshape(along) / jnp.sqrt(variance + EPS)
    return (h - mean) * scale + params["beta"].reshape(along)


@dataclass(frozen=True, eq=False)
class TrainingStatistics:
    """A network on other data with the statistics of its training inputs, at whatever parameters it is given.

    PyTorch keeps a running mean of the statistics instead, which full-batch training makes the same once the
    parameters stand still.
    """

    forward: Forward
    train: Any

    def __call__(self, params: Any, x: Array) -> Array:
        taken: list[Moments] = []

        def take(layer: Params, h: Array) -> Array:
            taken.append(_moments(h))
            return _normalised(layer, h, taken[-1])

        self.forward(params, jnp.asarray(self.train, x.dtype), take)

        def alone(row: Array) -> Array:
            given = iter(taken)
            return self.forward(params, row[None], lambda layer, h: _normalised(layer, h, next(given)))[0]

        return jax.lax.map(alone, x, batch_size=_ROWS)
