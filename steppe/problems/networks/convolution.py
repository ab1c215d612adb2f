"""Convolutions of images (n, height, width, channels), stride 1, padded to keep the size."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.problems.networks import linear
from steppe.problems.networks.first_layer import Params
from steppe.problems.networks.parameterisation import Parameterisation, standard

# Numbers laid out at a time: a megabyte of float32, as much as a core keeps near.
_CACHED = 2**18


def init(
    outputs: int,
    inputs: int,
    rng: np.random.Generator,
    dtype: Any,
    *,
    size: int = 3,
    parameterisation: Parameterisation = standard,
    bias: bool = True,
) -> Params:
    """W (outputs, inputs, size, size), as PyTorch has it, and b (outputs,)."""
    fan_in = inputs * size * size
    params = {"W": parameterisation.weights(rng, (outputs, inputs, size, size), fan_in, dtype)}
    if bias:
        params["b"] = parameterisation.biases(rng, (outputs,), fan_in, dtype)
    return params


def apply(params: Params, h: Array, parameterisation: Parameterisation = standard) -> Array:
    W = params["W"]
    factor = parameterisation.factor(int(np.prod(W.shape[1:])))
    outputs = convolved(h, W)
    return linear.with_bias(params, outputs if factor == 1 else factor * outputs)


def convolved(h: Array, W: Array) -> Array:
    """A few images at a time: W as a matrix, times the neighbourhoods of the pixels laid out in columns.

    The compiler's own convolution is up to 50 times as slow within a loop, where all our gradients are. The columns of
    all images at once take as many times the memory of h as W has pixels, and leave the cache. They are laid out once
    more for the derivative, which costs little.

    >>> convolved(jnp.ones((1, 2, 3, 1)), jnp.ones((1, 1, 3, 3)))[0, :, :, 0].tolist()
    [[4.0, 6.0, 4.0], [4.0, 6.0, 4.0]]
    """
    n, most = len(h), max(1, _CACHED // math.prod((*h.shape[1:], *W.shape[2:])))
    if n <= most:
        return _few(h, W)
    parts = -(-n // most)
    together = -(-n // parts)
    filled = jnp.pad(h, ((0, parts * together - n), *[(0, 0)] * 3)).reshape(parts, together, *h.shape[1:])
    return jax.lax.map(lambda part: _few(part, W), filled).reshape(-1, *h.shape[1:3], len(W))[:n]


@jax.checkpoint
def _few(h: Array, W: Array) -> Array:
    """With the channels before the pixels, of which there are more to go through at a stride of one."""
    outputs, _, *size = W.shape
    n, height, width, _ = h.shape
    # As "SAME": of an even size the larger half of the margin comes after.
    margins = [((s - 1) // 2, s // 2) for s in size]
    framed = jnp.pad(h.transpose(3, 0, 1, 2), ((0, 0), (0, 0), *margins))
    shifted = [framed[:, :, i : i + height, j : j + width] for i in range(size[0]) for j in range(size[1])]
    columns = jnp.stack(shifted).reshape(-1, n * height * width)
    matrix = W.transpose(0, 2, 3, 1).reshape(outputs, -1)
    return (matrix @ columns).reshape(outputs, n, height, width).transpose(1, 2, 3, 0)
