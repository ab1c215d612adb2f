"""One `key` for all randomness: a whole number, a key of jax.random or, for measures, a numpy generator."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check

Key = int | Array | np.random.Generator

# Seeds of jax.random are signed numbers of 64 bits; the words of its keys are unsigned.
_SEEDS = 2**63


def seed(key: int | Array, *, remedy: str = "Pass a whole number or a key of jax.random.") -> int:
    """The whole number that stands for a key, of either kind that jax.random has.

    >>> seed(3), seed(jax.random.key(3)), seed(jax.random.PRNGKey(3))
    (3, 3, 3)
    """
    if isinstance(key, Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        key = jax.random.key_data(key)
    if isinstance(key, Array | np.ndarray) and key.ndim == 1 and key.dtype == np.uint32:
        return int.from_bytes(np.asarray(key, dtype=">u4").tobytes(), "big") % _SEEDS
    return check.integer("key", key, minimum=0, remedy=remedy) % _SEEDS


def generator(key: Key) -> np.random.Generator:
    """Any key as a numpy generator.

    >>> bool(generator(3).integers(100) == generator(3).integers(100))
    True
    """
    if isinstance(key, np.random.Generator):
        return key
    remedy = "Pass a whole number, a key of jax.random or a numpy Generator."
    return np.random.default_rng(seed(key, remedy=remedy))


def step_key(key: int, step: int | Array) -> Array:
    """The key of one step of a run, on the generic path and in the kernels."""
    return jax.random.fold_in(jax.random.key(key), step)


def label_noise(key: Array, size: int, sigma: float | Array, y: Array) -> Array:
    """σξ for a batch of `size` labels with the shape and dtype of y, ξ standard normal."""
    return jnp.asarray(sigma, y.dtype) * jax.random.normal(key, (size, *y.shape[1:]), y.dtype)
