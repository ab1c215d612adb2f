"""Explicit minimisers of wen2023 put into ordinary problems and measured."""

from typing import Any

import jax
import numpy as np

from steppe import losses, measures
from steppe.constructions import bounds, generalising, memorising
from steppe.constructions import printed as as_printed
from steppe.problems import Problem
from steppe.problems.data import xor
from steppe.problems.networks import TwoLayer


def four_neuron_trace(d: int, *, printed: bool) -> tuple[float, float]:
    """(trace of the net of Eq. 5, bound) on points of P_xor."""
    build = as_printed.xor if printed else generalising.xor
    data = xor(d, 64, key=0)
    trace, _ = _measured(build(d), data.x, data.y)
    return trace, bounds.two_layer_bias(data.x, data.y)


def memorising_trace(d: int, n: int) -> tuple[float, float, float]:
    """(trace of the memorising net of Theorem 4.1, bound, train loss) on n points of P_xor."""
    data = xor(d, n, replace=False, key=0)
    trace, loss = _measured(memorising.two_layer(data.x, data.y), data.x, data.y)
    return trace, bounds.two_layer_bias(data.x, data.y), loss


def _measured(params: dict[str, Any], x: Any, y: Any) -> tuple[float, float]:
    with jax.enable_x64(True):
        problem = Problem(TwoLayer(), {k: np.asarray(v, float) for k, v in params.items()}, x, y, losses.mse)
        return measures.trace(problem, problem.w0).value, measures.loss(problem, problem.w0).value
