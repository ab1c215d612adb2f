"""Explicit minimisers of wen2023 as ordinary problems, measured in 64 bits: what the claims about theory are made of.

Networks, measures and JAX are imported when they are used, so that a claim is declared without them.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import steppe
from steppe.papers.wen2023.theory import bounds, generalising

Floats = NDArray[np.floating]
Params = dict[str, Any]

# Both sides are sums of some 10² float64 terms, and a first layer that separates close points loses a few digits more.
ROUNDING = 1e-10


def memorising(x: Any, y: Any, depth: int = 2, *, eps: float | None = None, fraction: float = 0.5) -> Params:
    """The net of Theorem 4.1 with one neuron for each point; with `eps`, that of Theorem 5.1 for 2-MLP-Sim-LN(ε)."""
    nets = steppe.flattening.memorising
    return nets.deep(x, y, depth, fraction=fraction) if eps is None else nets.sim_ln(x, y, eps)


def network(params: Params, *, eps: float | None = None, train: Any = None) -> Any:
    """The architecture of these parameters. Batch normalisation takes its statistics from `train`."""
    from steppe import networks

    if "gamma" in params:
        return networks.SimBN(train)
    if eps is not None:
        return networks.SimLN(eps)
    depth = sum(name[0] == "W" for name in params)
    return networks.TwoLayer(bias="b1" in params) if depth == 2 else networks.MLP(depth, bias="b1" in params)


def measured(params: Params, x: Any, y: Any, loss: Any = None, **rest: Any) -> tuple[float, float]:
    """(trace, train loss); the loss is the mean of squares by default."""
    import jax

    with jax.enable_x64(True):
        problem = _problem(params, x, y, steppe.losses.mse if loss is None else loss, **rest)
        return steppe.measures.trace(problem, problem.w0).value, steppe.measures.loss(problem, problem.w0).value


def dense_trace(params: Params, x: Any, y: Any, **rest: Any) -> float:
    """The trace of the dense Hessian by autodiff: for small nets."""
    import jax

    with jax.enable_x64(True):
        problem = _problem(params, x, y, steppe.losses.mse, **rest)
        return float(np.trace(jax.hessian(problem.loss)(problem.w0)))


def outputs(params: Params, x: Any, *, train: Any = None, **rest: Any) -> Floats:
    import jax

    with jax.enable_x64(True):
        f = network(params, train=train, **rest)(_double(params), np.asarray(x, float))
        return np.asarray(f, np.float64)


def memorises(params: Params, x: Any, y: Any, *, eps: float | None = None) -> bool:
    """Definition 4.2: the net interpolates, and in each hidden layer every example has one active neuron of its own.

    The hidden layer of a normalised net is its normalised one. A label 0 cannot have such a neuron in a flattest net.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    if np.abs(outputs(params, x, **({} if eps is None else {"eps": eps})) - y).max() > 1e-8:
        return False
    depth = sum(name[0] == "W" for name in params)
    a = x
    for layer in range(1, depth):
        a = np.maximum(a @ params[f"W{layer}"].T + (params["b1"] if layer == 1 and "b1" in params else 0.0), 0)
        one_hot = ((a > 0).sum(axis=1) == 1).all()
        if not one_hot or len(set(a.argmax(axis=1))) < len(x):
            return False
    return True


def error(params: Params, d: int, **rest: Any) -> float:
    """Pr(y f ≤ 0) for y = x₁x₂ over all of {−1, 1}^d."""
    x = cube(d)
    return float(np.mean(x[:, 0] * x[:, 1] * outputs(params, x, **rest) <= 0))


def cube(d: int) -> Floats:
    """All corners of {−1, 1}^d, one in each row; also all vectors of d signs."""
    return 2.0 * ((np.arange(2**d)[:, None] >> np.arange(d)) & 1) - 1.0


def circle(n: int, *, start: float = 0.0) -> Floats:
    """n points at equal angles on the unit circle, from the angle `start`."""
    return generalising.unit(2 * np.pi * np.arange(n) / n + start)


def excess(build: Callable[[Any, Any], Params], bound: Callable[[Any, Any], float], **rest: Any) -> float:
    """Relative excess of the trace over its bound on 100 points of P_xor, d = 30; inf for a net that does not fit."""
    data = steppe.data.xor(30, 100, replace=False, key=0)
    trace, loss = measured(build(data.x, data.y), data.x, data.y, **rest)
    return trace / bound(data.x, data.y) - 1 if loss < ROUNDING**2 else float("inf")


@cache
def worst_flattest(kind: str, *, d: int = 12, n: int = 40, eps: float = 1e-5) -> tuple[float, float]:
    """(excess over the least trace, error on unseen points) of the worst flattest interpolator, with bias and with
    simplified LayerNorm: the memorising net of theorems 4.1 and 5.1."""
    data = steppe.data.xor(d, n, replace=False, key=1)
    unseen = cube(d)[~(cube(d)[:, None] == data.x[None]).all(axis=2).any(axis=1)]
    y = unseen[:, 0] * unseen[:, 1]
    rest: dict[str, Any] = {"eps": eps} if kind == "sim-ln" else {}
    params = memorising(data.x, data.y, **rest)
    bound = bounds.sim_ln(data.x, data.y, eps) if rest else bounds.two_layer_bias(data.x, data.y)
    trace, _ = measured(params, data.x, data.y, **rest)
    return max(0.0, trace / bound - 1), float(np.mean(y * outputs(params, unseen, **rest) <= 0))


def _problem(params: Params, x: Any, y: Any, loss: Any, **rest: Any) -> Any:
    return steppe.Problem(network(params, train=x, **rest), _double(params), np.asarray(x, float), y, loss)


def _double(params: Params) -> dict[str, Floats]:
    return {name: np.asarray(a, float) for name, a in params.items()}
