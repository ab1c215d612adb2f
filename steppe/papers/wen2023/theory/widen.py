"""The same function at a larger width."""

import numpy as np

from steppe import check
from steppe.examples import Params


def widen(params: Params, width: int) -> Params:
    """Neurons that never fire, up to `width` in every hidden layer; function, gradient and trace do not change.

    >>> wide = widen({"W1": np.ones((1, 2)), "b1": np.ones(1), "W2": np.ones(1)}, 3)
    >>> wide["W1"].shape, wide["W2"].tolist()
    ((3, 2), [1.0, 0.0, 0.0])
    """
    m = len(params["W1"])
    width = check.integer("width", width, minimum=m, remedy="A construction can be widened, not narrowed.")
    if "gamma" in params:
        remedy = "Batch norm divides a silent neuron by 0: pass width to generalising.sim_bn_xor, which splits neurons."
        check.refuse("params", "of a network without batch norm", sorted(params), remedy)
    extra = width - m
    wide = {name: np.pad(array, _margins(name, array.ndim, extra)) for name, array in params.items()}
    if "b1" in wide:
        wide["b1"][m:] = -1.0  # keeps the new neurons away from relu's kink
    return wide


def _margins(name: str, axes: int, extra: int) -> list[tuple[int, int]]:
    """Every axis counts neurons but the second of W1, which counts inputs."""
    return [(0, 0 if name == "W1" and axis == 1 else extra) for axis in range(axes)]
