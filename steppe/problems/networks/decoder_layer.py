"""A transformer's decoder layer: causal self-attention, attention to the encoder's output, a network on each token."""

from typing import Any

import numpy as np
from jax import Array

from steppe.problems.networks import attention, encoder_layer, token_norm
from steppe.problems.networks.activations import Activation
from steppe.problems.networks.first_layer import Params


def init(dim: int, hidden: int, rng: np.random.Generator, dtype: Any) -> Params:
    """PyTorch's defaults."""
    cross = {"cross": attention.init(dim, rng, dtype), "norm3": token_norm.init(dim, dtype)}
    return encoder_layer.init(dim, hidden, rng, dtype) | cross


def apply(params: Params, h: Array, memory: Array, *, heads: int, activation: Activation) -> Array:
    """Normalised after each sum (Vaswani et al. 2017)."""
    h = token_norm.apply(params["norm1"], h + attention.apply(params["attention"], h, h, heads=heads, causal=True))
    h = token_norm.apply(params["norm2"], h + attention.apply(params["cross"], h, memory, heads=heads))
    return token_norm.apply(params["norm3"], h + encoder_layer.feed_forward(params, h, activation))
