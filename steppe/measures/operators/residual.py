"""∇²L minus its Gauss-Newton part."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from steppe.measures.operators.curvature import Curvature
from steppe.problems import Problem


def _weighted_outputs(problem: Problem, w: Array) -> Callable[[Array], Array]:
    """u ↦ ⟨∇_f L at w, f(u)⟩."""
    slopes = jax.grad(lambda f: problem.criterion(f, problem.y))(problem.predictions(w))
    return lambda u: jnp.vdot(slopes, problem.predictions(u))


residual = Curvature("residual", _weighted_outputs)
"""R = (1/n) Σᵢ Σ_c ℓ′_c ∇²f_c(xᵢ) = ∇²L − G: what bends the network rather than the loss.

Zero where the loss has no slope; its trace is zero for plain networks of ReLU layers.
"""
