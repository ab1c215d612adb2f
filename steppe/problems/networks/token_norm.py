"""Layer normalisation of tokens: γ (h − mean)/√(var + eps) + β over the last axis."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.problems.networks.first_layer import Params

EPS = 1e-5  # PyTorch's


def init(size: int, dtype: Any) -> Params:
    """γ = 1 and β = 0."""
    return {"gamma": np.ones(size, dtype), "beta": np.zeros(size, dtype)}


def apply(params: Params, h: Array) -> Array:
    """
    >>> apply(init(2, np.float64), jnp.array([[1.0, 3.0]])).round(3).tolist()
    [[-1.0, 1.0]]
    """
    centred = h - jnp.mean(h, axis=-1, keepdims=True)
    variance = jnp.mean(centred**2, axis=-1, keepdims=True)
    along = (1,) * (h.ndim - 1) + (-1,)
    return params["gamma"].reshape(along) * centred / jnp.sqrt(variance + EPS) + params["beta"].reshape(along)
