"""The idx format of MNIST: two zero bytes, the type, the number of axes, their lengths, then the bytes."""

import math

import numpy as np
from numpy.typing import NDArray

from steppe.problems.data.files.errors import DataError

_UNSIGNED_BYTES = 8


def idx(content: bytes, name: str) -> NDArray[np.uint8]:
    """The array of a file of unsigned bytes; read-only, since it is the file's own content.

    >>> idx(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]), "labels").tolist()
    [7, 9]
    """
    axes = content[3] if len(content) > 4 and content[:3] == bytes([0, 0, _UNSIGNED_BYTES]) else 0
    shape = tuple(int.from_bytes(content[4 + 4 * k : 8 + 4 * k], "big") for k in range(axes))
    if not shape or len(content) != 4 + 4 * axes + math.prod(shape):
        raise DataError(f"{name} is no idx file of unsigned bytes. `steppe data check` tells which file is wrong.")
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)
