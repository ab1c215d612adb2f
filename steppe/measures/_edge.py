"""How close a step of an optimiser is to the edge of stability."""

from typing import Any

import numpy as np
from jax import Array

from steppe import check
from steppe.curvature import AnyProblem, backend, hessian
from steppe.estimate import Estimate
from steppe.measures._policy import read_off


def edge_ratio(problem: AnyProblem, w: Array | None = None, *, step: Any = None) -> Estimate:
    """ΔᵀHΔ/(−gᵀΔ) of the step Δ = `step` from w, with g = ∇L(w) and H = ∇²L(w), by one product.

    To second order L(w + Δ) − L(w) = gᵀΔ + ½ΔᵀHΔ: the loss falls while the ratio is below 2, whatever made the step. An
    update of optax can be passed as it is, a flat vector or a pytree like the parameters; `problem.on(x, y)` is the
    problem of a batch. Without a step, Δ = −g: the ratio is gᵀHg/‖g‖², the curvature along the gradient, which
    gradient descent of rate η multiplies by η. NaN if gᵀΔ = 0.

    >>> import jax, jax.numpy as jnp, optax, steppe
    >>> p = steppe.Problem(lambda w, x: w * x, jnp.array([1.0]), jnp.array([2.0]), jnp.zeros(1), steppe.losses.half_mse)
    >>> descent = optax.sgd(0.5)                                    # L = 2w², H = 4 = 2/η
    >>> update, _ = descent.update(jax.grad(p.loss)(p.w0), descent.init(p.w0))
    >>> edge_ratio(p, p.w0, step=update).value, edge_ratio(p, p.w0).value
    (2.0, 4.0)
    """
    here = backend(problem)
    w = here.prepared(problem, w)
    g = np.asarray(here.gradient(problem, w), np.float64)
    delta = -g if step is None else _checked(problem, step)
    falls = -float(g @ delta)
    value = float(delta @ hessian(problem, w)(delta)) / falls if falls else float("nan")
    return read_off(value, matvecs=1)


def _checked(problem: AnyProblem, step: Any) -> np.ndarray:
    remedy = "Pass the update that the optimiser returns: a flat vector, or a pytree like the parameters."
    try:
        delta = np.asarray(problem.vector(step), np.float64)
    except (check.ArgumentError, TypeError, ValueError):
        check.refuse("step", f"a step of {problem.w0.size} parameters", step, remedy)
    check.finite("step", delta, remedy)
    return delta
