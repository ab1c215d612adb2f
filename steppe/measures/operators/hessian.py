"""∇²L."""

from collections.abc import Callable

from jax import Array

from steppe.measures.operators.curvature import Curvature
from steppe.problems import Problem


def _loss(problem: Problem, w: Array) -> Callable[[Array], Array]:
    return problem.loss


hessian = Curvature("hessian", _loss)
"""H = ∇²L(w): the Hessian of the loss itself.

>>> import jax.numpy as jnp, steppe
>>> p = Problem(lambda w, x: w[0] * w[1] * x, jnp.ones(2), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)
>>> hessian(p, p.w0).dense().tolist()                           # L = ½(w₁w₂ − 1)² at (1, 1)
[[1.0, 1.0], [1.0, 1.0]]
"""
