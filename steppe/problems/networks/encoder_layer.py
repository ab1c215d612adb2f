"""A transformer's encoder layer: self-attention and a two-layer network on each token, both residual."""

from typing import Any

import numpy as np
from jax import Array

from steppe.problems.networks import attention, linear, token_norm
from steppe.problems.networks.activations import Activation
from steppe.problems.networks.first_layer import Params


def init(dim: int, hidden: int, rng: np.random.Generator, dtype: Any) -> Params:
    """PyTorch's defaults."""
    return {
        "attention": attention.init(dim, rng, dtype),
        "norm1": token_norm.init(dim, dtype),
        "widen": linear.init(hidden, dim, rng, dtype),
        "narrow": linear.init(dim, hidden, rng, dtype),
        "norm2": token_norm.init(dim, dtype),
    }


def feed_forward(params: Params, h: Array, activation: Activation) -> Array:
    return linear.apply(params["narrow"], activation(linear.apply(params["widen"], h)))


def apply(params: Params, h: Array, *, heads: int, activation: Activation, norm_first: bool) -> Array:
    """Normalised before each of the two (Dosovitskiy et al. 2021) or after each sum (Vaswani et al. 2017)."""

    def attended(h: Array) -> Array:
        return attention.apply(params["attention"], h, h, heads=heads)

    if norm_first:
        h = h + attended(token_norm.apply(params["norm1"], h))
        return h + feed_forward(params, token_norm.apply(params["norm2"], h), activation)
    h = token_norm.apply(params["norm1"], h + attended(h))
    return token_norm.apply(params["norm2"], h + feed_forward(params, h, activation))
