"""h ↦ factor · W h + b along the last axis."""

from typing import Any

import numpy as np
from jax import Array

from steppe.problems.networks.first_layer import Params
from steppe.problems.networks.parameterisation import Parameterisation, standard


def init(
    outputs: int,
    inputs: int,
    rng: np.random.Generator,
    dtype: Any,
    *,
    parameterisation: Parameterisation = standard,
    bias: bool = True,
) -> Params:
    """W (outputs, inputs) and, with `bias`, b (outputs,)."""
    params = {"W": parameterisation.weights(rng, (outputs, inputs), inputs, dtype)}
    if bias:
        params["b"] = parameterisation.biases(rng, (outputs,), inputs, dtype)
    return params


def apply(params: Params, h: Array, parameterisation: Parameterisation = standard) -> Array:
    factor = parameterisation.factor(params["W"].shape[1])
    outputs: Array = h @ params["W"].T
    return with_bias(params, outputs if factor == 1 else factor * outputs)


def with_bias(params: Params, h: Array) -> Array:
    """h + b along the last axis, where there is a b."""
    return h + params["b"].reshape((1,) * (h.ndim - 1) + (-1,)) if "b" in params else h


def readout(params: Params, h: Array, parameterisation: Parameterisation = standard) -> Array:
    """The last layer of a network."""
    factor = parameterisation.readout(params["W"].shape[1])
    outputs = apply(params, h, parameterisation)
    return outputs if factor == 1 else factor * outputs
