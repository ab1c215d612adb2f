"""Activations inside kernels. Which one it is, is data: one compiled kernel serves all."""

from typing import NamedTuple

import numpy as np

from steppe.dynamics.kernels.compiled import part
from steppe.dynamics.kernels.elementary import softplus
from steppe.problems import networks


class Activation(NamedTuple):
    """log(1 + eʰ) if `smooth`; else h where h > 0 and leak·h elsewhere, of which ReLU is leak 0."""

    smooth: bool
    leak: np.floating


def of(activation: networks.Activation, number: type[np.floating]) -> Activation | None:
    """The kernel's form of a network's activation, or None."""
    if activation.leak is not None:
        return Activation(False, number(activation.leak))
    return Activation(True, number(0)) if activation == networks.softplus else None


@part
def evaluate(activation, h):  # type: ignore[no-untyped-def]
    """(σ(h), σ′(h)). The compiler moves the choice out of a loop over h."""
    if activation.smooth:
        return softplus(h)
    slope = type(h)(1) if h > type(h)(0) else activation.leak
    return slope * h, slope
