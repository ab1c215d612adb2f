"""The shape that convolutional networks and vision transformers ask of their inputs."""

from typing import Any

import numpy as np

from steppe import check


def image(inputs: Any, *, minimum: int = 1) -> tuple[int, int, int]:
    """(height, width, channels), refused where it is not, or smaller than `minimum` pixels a side."""
    shape = tuple(inputs) if np.ndim(inputs) == 1 else ()
    if len(shape) != 3 or min(shape) < 1 or min(shape[:2]) < minimum:
        check.refuse(
            "inputs",
            f"(height, width, channels) of at least {minimum} × {minimum} pixels",
            inputs,
            "Reshape x to (examples, height, width, channels), or take an FCN.",
        )
    height, width, channels = map(int, shape)
    return height, width, channels
