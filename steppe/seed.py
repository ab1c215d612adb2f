"""One `key` for everything random: a whole number, or a key of jax.random."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check

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
