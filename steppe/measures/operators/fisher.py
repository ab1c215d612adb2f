"""The Fisher information of the distribution that the loss is the negative log-likelihood of."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from steppe import check, losses
from steppe.measures.operators.curvature import Curvature
from steppe.problems import Problem


def score_root(problem: Problem, w: Array) -> Callable[[Array], Array]:
    """v ↦ C_i^{½} J_i v for each example, (n, outputs): C_i the covariance of the score under the model."""
    f, push = jax.linearize(problem.predictions, w)
    root = _root(problem)
    return lambda v: jax.vmap(root)(f, push(v)).reshape(len(problem), -1)


def _root(problem: Problem) -> Callable[[Array, Array], Array]:
    """One example's t ↦ Bᵀt with B Bᵀ = C, the covariance of ∇_f ℓ for labels drawn from the model.

    | loss | the model | C |
    | --- | --- | --- |
    | half_mse | y ~ N(f, I) | I |
    | mse, c outputs | y ~ N(f, c/2) | 2/c I |
    | cross_entropy | y ~ softmax(f) | diag(p) − ppᵀ, mean over positions |
    | logistic | P(y = 1) = σ(f) | σ(1 − σ), mean over outputs |

    Smoothing moves the labels, not the model: it does not enter.
    """
    roots = {"half_mse": _gaussian, "mse": _mean_gaussian, "cross_entropy": _categorical, "logistic": _bernoulli}
    name = problem.criterion.name
    if not losses.ours(problem.criterion):
        seen = f"a loss of the name {name!r}" if name in roots else name
        remedy = "Another loss names no distribution of labels; take gauss_newton, or empirical_fisher."
        check.refuse("loss", "one of steppe.losses for the Fisher matrix", seen, remedy)
    return roots[name]


def _gaussian(f: Array, t: Array) -> Array:
    return t


def _mean_gaussian(f: Array, t: Array) -> Array:
    return t * (2 / t.size) ** 0.5


def _categorical(f: Array, t: Array) -> Array:
    # B = diag(√p) − p√pᵀ, and √pᵀ√p = 1. The classes are the last axis, the others are positions.
    p = jax.nn.softmax(f)
    centred = t - jnp.sum(p * t, axis=-1, keepdims=True)
    return jnp.sqrt(p) * centred * (t.shape[-1] / t.size) ** 0.5


def _bernoulli(f: Array, t: Array) -> Array:
    return t * jnp.sqrt(jax.nn.sigmoid(f) * jax.nn.sigmoid(-f) / t.size)


def _squared_scores(problem: Problem, w: Array) -> Callable[[Array], Array]:
    root = score_root(problem, w)
    return lambda u: 0.5 * jnp.sum(root(u - w) ** 2) / len(problem)


fisher = Curvature("fisher", _squared_scores, score_root)
"""F = (1/n) Σᵢ J_iᵀ Cov_{y ~ model}(∇_f ℓ) J_i, the true Fisher matrix.

It needs no sampling: the covariance is known for every loss of steppe.losses, where it also equals ∇²_f ℓ (f is the
natural parameter), so that F is the Gauss-Newton matrix (Martens 2020, section 9).
"""
