"""How far the parameters have moved."""

from typing import Any

from jax import Array

from steppe.estimate import Estimate
from steppe.measures.inputs import vector
from steppe.measures.norms import Order, norm
from steppe.problems import Problem


def distance(problem: Problem, w: Array, *, to: Any = None, order: Order = 2) -> Estimate:
    """‖w − to‖ in the norms of `norm`; `to` is the initialisation problem.w0 unless another point is given.

    >>> import jax.numpy as jnp, steppe
    >>> p = Problem(lambda w, x: x @ w, jnp.array([1.0, 1.0]), jnp.ones((1, 2)), jnp.ones(1), steppe.losses.mse)
    >>> distance(p, jnp.array([4.0, 5.0])).value
    5.0
    """
    w = vector(problem, w)
    return norm(problem, w - problem.vector(problem.w0 if to is None else to), order=order)
