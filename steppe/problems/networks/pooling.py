"""2×2 pooling of images (n, height, width, channels); a last odd row or column is left out, as in PyTorch."""

import jax.numpy as jnp
from jax import Array


def _windows(h: Array) -> Array:
    """(n, height/2, 2, width/2, 2, channels)."""
    n, height, width, channels = h.shape
    rows, columns = height // 2, width // 2
    return h[:, : 2 * rows, : 2 * columns].reshape(n, rows, 2, columns, 2, channels)


def largest(h: Array) -> Array:
    """The largest of each window; where several are largest each carries its share of the derivative.

    >>> largest(jnp.arange(8.0).reshape(1, 2, 4, 1)).ravel().tolist()
    [5.0, 7.0]
    """
    return jnp.max(_windows(h), axis=(2, 4))


def average(h: Array) -> Array:
    return jnp.mean(_windows(h), axis=(2, 4))
