"""One `key` for everything random: a whole number, a key of jax.random, or (for measures) a numpy generator."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check

# One `key` for everything random: a whole number, or a key of jax.random.

REMEDY = "Pass a whole number or a key of jax.random."

# Seeds of jax.random are signed and have 64 bits; the words of its keys have no sign.
_MOST = 2**63


def seed(key: int | Array, *, remedy: str = REMEDY) -> int:
    """The whole number that stands for a key; keys of both kinds that jax.random has are taken.

    >>> seed(3), seed(jax.random.key(3)), seed(jax.random.PRNGKey(3))
    (3, 3, 3)
    """
    if isinstance(key, Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        key = jax.random.key_data(key)
    if isinstance(key, Array | np.ndarray) and key.ndim == 1 and key.dtype == np.uint32:
        return int.from_bytes(np.asarray(key, dtype=">u4").tobytes(), "big") % _MOST
    return check.integer("key", key, minimum=0, remedy=remedy) % _MOST


# One `key` for all measures.

Key = int | Array | np.random.Generator


def generator(key: Key) -> np.random.Generator:
    """A whole number, a key of jax.random or a numpy generator, as a generator.

    >>> bool(generator(3).integers(100) == generator(3).integers(100))
    True
    """
    if isinstance(key, np.random.Generator):
        return key
    remedy = "Pass a whole number, a key of jax.random or a numpy Generator."
    return np.random.default_rng(seed(key, remedy=remedy))


def label_noise(key: Array, size: int, sigma: float | Array, y: Array) -> Array:
    """σξ for a batch of `size` labels like those of y."""
    return jnp.asarray(sigma, y.dtype) * jax.random.normal(key, (size, *y.shape[1:]), y.dtype)


def step_key(key: int, step: int | Array) -> Array:
    """The key that the generic path hands to that step of a run."""
    return jax.random.fold_in(jax.random.key(key), step)
