"""(1/n) Σᵢ J_iᵀ ℓ″ J_i."""

from collections.abc import Callable

import jax
from jax import Array

from steppe import check, losses
from steppe.measures.operators.curvature import Curvature
from steppe.measures.operators.fisher import score_root
from steppe.problems import Problem


def _linearised_network(problem: Problem, w: Array) -> Callable[[Array], Array]:
    """u ↦ (1/n) Σᵢ ℓ(f(xᵢ; w) + J_i (u − w), yᵢ)."""
    f, push = jax.linearize(problem.predictions, w)
    return lambda u: problem.criterion(f + push(u - w), problem.y)


def _output_root(problem: Problem, w: Array) -> Callable[[Array], Array]:
    """∇²_f ℓ of our losses is the covariance of the score."""
    if not has_root(problem):
        remedy = "Its ∇²ℓ need not be positive, so that G need not be BᵀB: take products, gauss_newton(problem, w)."
        check.refuse("loss", "one of steppe.losses for a root of G", f"a user's {problem.criterion.name!r}", remedy)
    return score_root(problem, w)


def has_root(problem: Problem) -> bool:
    """Whether B with G = (1/n) BᵀB is known."""
    return losses.ours(problem.criterion)


gauss_newton = Curvature("gauss_newton", _linearised_network, _output_root)
"""G = (1/n) Σᵢ J_iᵀ ∇²_f ℓ J_i: the Hessian of the loss of the network linearised at w.

G = ∇²L where the loss has no slope in the predictions, at an interpolator for example, and for linear networks;
positive semi-definite for every loss of steppe.losses (Schraudolph 2002), and for convex ones of users.
"""
