"""(1/n) Σᵢ ∇ℓᵢ ∇ℓᵢᵀ."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from steppe.measures.operators.curvature import Curvature
from steppe.problems import Problem


def gradient_root(problem: Problem, w: Array) -> Callable[[Array], Array]:
    """v ↦ ⟨∇ℓᵢ(w), v⟩ for each example, (n, 1)."""
    f, push = jax.linearize(problem.predictions, w)
    slopes = jax.vmap(jax.grad(problem.criterion.example))(f, problem.y)
    return lambda v: jnp.sum((slopes * push(v)).reshape(len(problem), -1), axis=1, keepdims=True)


def _squared_gradients(problem: Problem, w: Array) -> Callable[[Array], Array]:
    root = gradient_root(problem, w)
    return lambda u: 0.5 * jnp.sum(root(u - w) ** 2) / len(problem)


empirical_fisher = Curvature("empirical_fisher", _squared_gradients, gradient_root)
"""(1/n) Σᵢ ∇ℓᵢ(w) ∇ℓᵢ(w)ᵀ, the second moment of the examples' gradients: with the data's labels, not the model's.

It vanishes at an interpolator, where the true Fisher matrix does not (Kunstner, Balles and Hennig 2019).
"""
