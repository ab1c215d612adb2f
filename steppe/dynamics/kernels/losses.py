"""Losses of one number inside kernels."""

from typing import NamedTuple

import numpy as np

from steppe import losses
from steppe.dynamics.kernels.compiled import part
from steppe.dynamics.kernels.elementary import softplus


class Loss(NamedTuple):
    """½ `parameter` (f − y)², or the logistic loss with smoothing `parameter`."""

    logistic: bool
    parameter: np.floating


def of(loss: losses.Loss, number: type[np.floating]) -> Loss | None:
    """The kernel's form of a problem's loss, or None."""
    scales = {losses.mse: 2, losses.half_mse: 1}
    if loss in scales:
        return Loss(False, number(scales[loss]))
    # A user's loss may carry the name.
    return Loss(True, number(loss.smoothing)) if loss.name == "logistic" and losses.ours(loss) else None


@part
def value(loss, f, y):  # type: ignore[no-untyped-def]
    """ℓ(f, y)."""
    if not loss.logistic:
        return loss.parameter * (f - y) * (f - y) / type(f)(2)
    p = loss.parameter
    return (type(f)(1) - p) * softplus(-y * f)[0] + p * softplus(y * f)[0]


@part
def slope(loss, f, y):  # type: ignore[no-untyped-def]
    """∂ℓ/∂f."""
    if not loss.logistic:
        return loss.parameter * (f - y)
    p = loss.parameter
    return y * (p * softplus(y * f)[1] - (type(f)(1) - p) * softplus(-y * f)[1])
