"""One `key` for all measures."""

import numpy as np
from jax import Array

from steppe.seed import seed

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
