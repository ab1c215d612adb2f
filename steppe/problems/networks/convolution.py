"""Convolutions of images (n, height, width, channels), stride 1, padded to keep the size."""

from typing import Any

import jax
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
    # Channels last, weights as PyTorch has them: the fastest of the layouts tried on a CPU.
    outputs = jax.lax.conv_general_dilated(h, W, (1, 1), "SAME", dimension_numbers=("NHWC", "OIHW", "NHWC"))
    return linear.with_bias(params, outputs if factor == 1 else factor * outputs)
