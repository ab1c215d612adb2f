"""The label noise of many steps at once: the same numbers that the generic path draws one step at a time."""

from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe.dynamics.label_noise import draw

# Drawn in blocks of one size, so that one compiled function serves every call.
_STEPS = 1024


@partial(jax.jit, static_argnums=2)
def _block(key: Array, first: Array, size: int, sigma: Array, y: Array) -> Array:
    return jax.vmap(lambda t: draw(jax.random.fold_in(key, t), size, sigma, y))(first + jnp.arange(_STEPS))


def pieces(
    key: int, first: int, count: int, size: int, sigma: float, y: Array
) -> Iterator[tuple[int, int, NDArray[np.floating]]]:
    """The steps [first, first + count) in pieces: (steps before it, steps in it, noise with one row a step)."""
    for done in range(0, count, _STEPS):
        noise = _block(jax.random.key(key), jnp.asarray(first + done), size, jnp.asarray(sigma), y)
        yield done, min(_STEPS, count - done), np.array(noise)
