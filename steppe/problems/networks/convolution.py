"""Convolutions of images (n, height, width, channels), stride 1, padded to keep the size."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.problems.networks import linear
from steppe.problems.networks.first_layer import Params
from steppe.problems.networks.parameterisation import Parameterisation, standard


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


@jax.checkpoint
def convolved(h: Array, W: Array) -> Array:
    """Each pixel's neighbourhood laid out in a row, times a matrix.

    The compiler's own convolution is up to 50 times as slow within a loop, where all our gradients are; outside it is
    up to twice as fast as this. The rows take as many times the memory of h as W has pixels, so they are laid out again
    for the derivative, which costs little.

    >>> convolved(jnp.ones((1, 2, 3, 1)), jnp.ones((1, 1, 3, 3)))[0, :, :, 0].tolist()
    [[4.0, 6.0, 4.0], [4.0, 6.0, 4.0]]
    """
    outputs, _, *size = W.shape
    n, height, width, _ = h.shape
    # As "SAME": of an even size the larger half of the margin comes after.
    margins = [((s - 1) // 2, s // 2) for s in size]
    framed = jnp.pad(h, ((0, 0), *margins, (0, 0)))
    shifted = [framed[:, i : i + height, j : j + width] for i in range(size[0]) for j in range(size[1])]
    rows = jnp.concatenate(shifted, axis=-1).reshape(n * height * width, -1)
    matrix = W.transpose(2, 3, 1, 0).reshape(-1, outputs)
    return (rows @ matrix).reshape(n, height, width, outputs)
