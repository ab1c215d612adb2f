"""Explicit minimisers of wen2023 put into ordinary problems and measured; the claims about theory are made of these."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from steppe import losses, measures
from steppe.data import complete, xor
from steppe.flattening import _memorising as memorising
from steppe.networks import MLP, SimBN, SimLN, TwoLayer
from steppe.papers.wen2023.theory import bounds, generalising
from steppe.problem import Problem

Floats = NDArray[np.floating]

# Both sides are sums of some 10² float64 terms, and a first layer that parts close points loses a few digits more.
ROUNDING = 1e-10


def network(params: dict[str, Any], *, eps: float | None = None, train: Any = None) -> Any:
    """The architecture these parameters are for."""
    if "gamma" in params:
        return SimBN(train)
    if eps is not None:
        return SimLN(eps)
    depth = sum(name[0] == "W" for name in params)
    return TwoLayer(bias="b1" in params) if depth == 2 else MLP(depth)


def measured(params: dict[str, Any], x: Any, y: Any, loss: Any = losses.mse, **rest: Any) -> tuple[float, float]:
    """(trace, train loss) in float64."""
    with jax.enable_x64(True):
        problem = Problem(network(params, train=x, **rest), _double(params), np.asarray(x, float), y, loss)
        return measures.trace(problem, problem.w0).value, measures.loss(problem, problem.w0).value


def dense_trace(params: dict[str, Any], x: Any, y: Any, **rest: Any) -> float:
    """The same trace from the dense Hessian by autodiff: for small nets."""
    with jax.enable_x64(True):
        problem = Problem(network(params, train=x, **rest), _double(params), np.asarray(x, float), y, losses.mse)
        return float(np.trace(jax.hessian(problem.loss)(problem.w0)))


def outputs(params: dict[str, Any], x: Any, *, train: Any = None, **rest: Any) -> Floats:
    with jax.enable_x64(True):
        f = network(params, train=train, **rest)(_double(params), np.asarray(x, float))
        return np.asarray(f, np.float64)


def error(params: dict[str, Any], d: int, **rest: Any) -> float:
    """Pr(y f ≤ 0) for y = x₁x₂ over all of {−1, 1}^d."""
    x = cube(d)
    return float(np.mean(x[:, 0] * x[:, 1] * outputs(params, x, **rest) <= 0))


def cube(d: int) -> Floats:
    corners: Floats = 2.0 * ((np.arange(2**d)[:, None] >> np.arange(d)) & 1) - 1.0
    return corners


def excess(build: Callable[[Any, Any], dict[str, Any]], bound: Callable[[Any, Any], float], **rest: Any) -> float:
    """How far a construction is from its bound, relative, on 100 points of P_xor in d = 30; inf if it fits badly."""
    data = xor(30, 100, replace=False, key=0)
    trace, loss = measured(build(data.x, data.y), data.x, data.y, **rest)
    return trace / bound(data.x, data.y) - 1 if loss < ROUNDING**2 else float("inf")


def worst_flattest(kind: str, *, d: int = 12, n: int = 40, eps: float = 1e-5) -> tuple[float, float]:
    """(excess over the least trace, error on unseen points) of the flattest interpolator that generalises worst."""
    data = xor(d, n, replace=False, key=1)
    unseen = cube(d)[~(cube(d)[:, None] == data.x[None]).all(axis=2).any(axis=1)]
    y = unseen[:, 0] * unseen[:, 1]
    if kind in ("bias", "sim-ln"):
        rest = {"eps": eps} if kind == "sim-ln" else {}
        params = memorising.sim_ln(data.x, data.y, eps) if rest else memorising.two_layer(data.x, data.y)
        bound = bounds.sim_ln(data.x, data.y, eps) if rest else bounds.two_layer_bias(data.x, data.y)
        trace, _ = measured(params, data.x, data.y, **rest)
        return max(0.0, trace / bound - 1), float(np.mean(y * outputs(params, unseen, **rest) <= 0))
    if kind == "no-bias":
        # The least trace is not known in closed form: the net that generalises, against the bound without attainment.
        params = generalising.no_bias_xor(d)
        trace, _ = measured(params, data.x, data.y)
        return trace / bounds.two_layer_no_bias(data.x, data.y) - 1, float(np.mean(y * outputs(params, unseen) <= 0))
    full = complete(d, key=1)
    params = generalising.sim_bn_xor(d, scale=1e3)
    trace, _ = measured(params, full.x, full.y)
    return trace / bounds.sim_bn_complete(full.x, full.y) - 1, error(params, d, train=full.x)


def _double(params: dict[str, Any]) -> dict[str, Floats]:
    return {name: np.asarray(a, float) for name, a in params.items()}
