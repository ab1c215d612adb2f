"""Sinusoidal positions (Vaswani et al. 2017): sin and cos of position / 10000^(2k/dim), in turn."""

import numpy as np
from numpy.typing import NDArray


def sinusoidal(length: int, dim: int) -> NDArray[np.float64]:
    """(length, dim).

    >>> sinusoidal(2, 2).round(4).tolist()
    [[0.0, 1.0], [0.8415, 0.5403]]
    """
    angles = np.arange(length)[:, None] * 10_000.0 ** (-2 * (np.arange(dim) // 2)[None] / dim)
    return np.where(np.arange(dim)[None] % 2 == 0, np.sin(angles), np.cos(angles))
