"""One `key` for all measures."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check

Key = int | Array | np.random.Generator


def generator(key: Key) -> np.random.Generator:
    """A whole number, a key of jax.random or a numpy generator, as a generator.

    >>> bool(generator(3).integers(100) == generator(3).integers(100))
    True
    """
    if isinstance(key, np.random.Generator):
        return key
    if isinstance(key, Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return np.random.default_rng(np.asarray(jax.random.key_data(key)))
    remedy = "Pass a whole number, a key of jax.random.key or a numpy Generator."
    return np.random.default_rng(check.integer("key", key, minimum=0, remedy=remedy))
