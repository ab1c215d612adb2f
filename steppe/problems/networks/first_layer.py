"""W₁x + b₁, the layer that every network here begins with, and PyTorch's default initialisation of any layer."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check

Params = dict[str, Any]


def uniform(rng: np.random.Generator, shape: int | tuple[int, int], fan_in: int, dtype: Any) -> NDArray[Any]:
    """PyTorch's default initialisation of a linear layer, weights and bias: uniform on ±1/√fan_in."""
    bound = 1 / np.sqrt(fan_in)
    return rng.uniform(-bound, bound, shape).astype(dtype)


def init(d: int, width: int, rng: np.random.Generator, dtype: Any, *, bias: bool, scale: float) -> Params:
    """W1 (width, d) and, with `bias`, b1 (width,), as PyTorch draws them and then times `scale`."""
    check.integer("d", d, minimum=1)
    check.integer("width", width, minimum=1)
    scale = check.number("first_layer_scale", scale, above=0.0, remedy="wen2023 takes 1, and 0.01 in figure 6a.")
    params = {"W1": uniform(rng, (width, d), d, dtype)}
    if bias:
        params["b1"] = uniform(rng, width, d, dtype)
    return {name: a * a.dtype.type(scale) for name, a in params.items()}


def preactivations(params: Params, x: Array, *, bias: bool) -> Array:
    h: Array = x @ params["W1"].T
    return h + params["b1"][None] if bias else h


def extended(x: Array, *, bias: bool) -> Array:
    """x′ = (x, 1), the input that a row of (W₁, b₁) sees; x itself without bias."""
    return jnp.concatenate([x, jnp.ones_like(x[:, :1])], axis=1) if bias else x


def lengths(x: Array, *, bias: bool) -> Array:
    """‖x′‖² of each example."""
    return jnp.sum(x**2, axis=1) + (1 if bias else 0)
