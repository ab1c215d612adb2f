"""Uniform initial weights, as PyTorch draws them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def fan_in_uniform(rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, dtype: Any) -> NDArray[Any]:
    """Uniform on ±1/√fan_in: linear layers and convolutions, weights and bias; variance 1/(3 fan_in)."""
    bound = fan_in**-0.5
    return rng.uniform(-bound, bound, shape).astype(dtype)


def glorot_uniform(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> NDArray[Any]:
    """Uniform on ±√(6/(fan_in + fan_out)), `shape` (fan_out, fan_in): the projections of attention."""
    bound = (6 / sum(shape)) ** 0.5
    return rng.uniform(-bound, bound, shape).astype(dtype)
