"""The curvature matrices: Hessian, Gauss-Newton, residual, Fisher, empirical Fisher, Gram."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check, losses
from steppe.curvature._inputs import prepared, refuse_kinked_loss
from steppe.curvature._operator import MEMORY, Curvature, Operator, Root, expect_consistent, held, narrower, settled
from steppe.curvature._statistics import FULL_BATCH, Pieces, Start, Statistics, part
from steppe.problem import Problem

# ∇²L.


def _loss(problem: Problem, w: Array) -> Callable[[Array], Array]:
    return problem.loss


hessian = Curvature("hessian", _loss)
"""H = ∇²L(w): the Hessian of the loss itself.

>>> import jax.numpy as jnp, steppe
>>> p = Problem(lambda w, x: w[0] * w[1] * x, jnp.ones(2), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)
>>> hessian(p, p.w0).dense().tolist()                           # L = ½(w₁w₂ − 1)² at (1, 1)
[[1.0, 1.0], [1.0, 1.0]]
"""


# ∇²L minus its Gauss-Newton part.


def _weighted_outputs(problem: Problem, w: Array) -> Callable[[Array], Array]:
    """u ↦ ⟨∇_f L at w, f(u)⟩."""
    slopes = jax.grad(lambda f: problem.loss_function(f, problem.y))(problem.predictions(w))
    return lambda u: jnp.vdot(slopes, problem.predictions(u))


residual = Curvature("residual", _weighted_outputs)
"""R = (1/n) Σᵢ Σ_c ℓ′_c ∇²f_c(xᵢ) = ∇²L − G: the part from the curvature of the network, not of the loss.

It vanishes where the loss has no slope; its trace vanishes for plain networks of ReLU layers.
"""


# The Fisher information, for losses that are negative log-likelihoods.


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

    Smoothing changes the labels, not the model, so it does not appear.
    """
    roots = {"half_mse": _gaussian, "mse": _mean_gaussian, "cross_entropy": _categorical, "logistic": _bernoulli}
    name = problem.loss_function.name
    if not losses.ours(problem.loss_function):
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

It needs no sampling: the covariance is known for every loss of steppe.losses. There f is the natural parameter, so that
the covariance is ∇²_f ℓ and F is the Gauss-Newton matrix (Martens 2020, section 9).
"""


# (1/n) Σᵢ J_iᵀ ℓ″ J_i.


def _linearised_network(problem: Problem, w: Array) -> Callable[[Array], Array]:
    """u ↦ (1/n) Σᵢ ℓ(f(xᵢ; w) + J_i (u − w), yᵢ)."""
    f, push = jax.linearize(problem.predictions, w)
    return lambda u: problem.loss_function(f + push(u - w), problem.y)


def _output_root(problem: Problem, w: Array) -> Callable[[Array], Array]:
    """∇²_f ℓ of our losses is the covariance of the score."""
    if not has_root(problem):
        remedy = "Its ∇²ℓ need not be positive, so that G need not be BᵀB: take products, gauss_newton(problem, w)."
        check.refuse("loss", "one of steppe.losses for a root of G", f"a user's {problem.loss_function.name!r}", remedy)
    return score_root(problem, w)


def has_root(problem: Problem) -> bool:
    """Whether a B with G = (1/n) BᵀB is known."""
    return losses.ours(problem.loss_function)


gauss_newton = Curvature("gauss_newton", _linearised_network, _output_root)
"""G = (1/n) Σᵢ J_iᵀ ∇²_f ℓ J_i: the Hessian of the loss of the network linearised at w.

G = ∇²L where the loss has no slope in the predictions, at an interpolator for example, and for linear networks;
positive semi-definite for every loss of steppe.losses (Schraudolph 2002), and for convex losses of users.
"""


# (1/n) Σᵢ ∇ℓᵢ ∇ℓᵢᵀ.


def gradient_root(problem: Problem, w: Array) -> Callable[[Array], Array]:
    """v ↦ ⟨∇ℓᵢ(w), v⟩ for each example, (n, 1)."""
    f, push = jax.linearize(problem.predictions, w)
    slopes = jax.vmap(jax.grad(problem.loss_function.example))(f, problem.y)
    return lambda v: jnp.sum((slopes * push(v)).reshape(len(problem), -1), axis=1, keepdims=True)


def _squared_gradients(problem: Problem, w: Array) -> Callable[[Array], Array]:
    root = gradient_root(problem, w)
    return lambda u: 0.5 * jnp.sum(root(u - w) ** 2) / len(problem)


empirical_fisher = Curvature("empirical_fisher", _squared_gradients, gradient_root)
"""(1/n) Σᵢ ∇ℓᵢ(w) ∇ℓᵢ(w)ᵀ, the second moment of the examples' gradients, with the labels of the data.

It vanishes at an interpolator, where the true Fisher matrix does not (Kunstner, Balles and Hennig 2019).
"""


# The Gram matrix: A = (1/n) BᵀB and K = (1/n) BBᵀ have the same non-zero eigenvalues.


def gram(
    curvature: Curvature,
    problem: Problem,
    w: Array | None = None,
    *,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
) -> Operator:
    """K = (1/n) BBᵀ, (n·r) × (n·r), for the Gauss-Newton and Fisher matrices; r is the number of outputs, or 1 for
    the empirical Fisher matrix. For one example and half_mse it is the number ‖∇f‖².

    >>> import steppe
    >>> from steppe.curvature import gauss_newton
    >>> x, y = jnp.array([[3.0, 4.0]]), jnp.zeros(1)
    >>> p = Problem(lambda w, x: x @ w, jnp.ones(2), x, y, steppe.losses.half_mse)
    >>> gram(gauss_newton, p, p.w0).dense().tolist()
    [[25.0]]
    """
    if curvature.root is None:
        check.refuse(
            "curvature", "gauss_newton, fisher or empirical_fisher", curvature.name, "Only A = BᵀB has a Gram matrix."
        )
    problem, w, pieces = settled(curvature.model, problem, w, statistics=statistics, memory=memory)
    refuse_kinked_loss(problem, w)
    outputs = rank(curvature, problem, w) // len(problem)
    product: Linearised | Gram = Gram(problem, w, curvature.root, pieces, outputs)
    if pieces.whole and held(curvature.model, problem, w) <= memory:
        product = Linearised(_linearised(curvature.root, problem, w), len(problem), w)
    size, name = len(problem) * outputs, f"{curvature.name} gram"
    return expect_consistent(Operator(product, size, w.dtype, name, statistics, narrower(problem)), problem)


def rank(curvature: Curvature, problem: Problem, w: Array) -> int:
    """n·r, an upper bound on the rank."""
    assert curvature.root is not None
    return int(np.prod(eqx.filter_eval_shape(_mapped, curvature.root, problem, w).shape))


def smaller(
    curvature: Curvature,
    problem: Problem,
    w: Array | None = None,
    *,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
) -> Operator:
    """The matrix or its Gram matrix, whichever is smaller: for measures of the non-zero eigenvalues."""
    rooted = curvature.root is not None and (curvature is not gauss_newton or has_root(problem))
    if rooted and rank(curvature, problem, prepared(problem, w)) < problem.w0.size:
        return gram(curvature, problem, w, statistics=statistics, memory=memory)
    return curvature(problem, w, statistics=statistics, memory=memory)


class Linearised(eqx.Module):
    """u ↦ (1/n) B Bᵀu, with B linearised once."""

    root: Any
    n: int = eqx.field(static=True)
    w: Array

    def __call__(self, u: Array) -> Array:
        shape = jax.eval_shape(self.root, self.w)
        (pulled,) = jax.linear_transpose(self.root, self.w)(u.reshape(shape.shape))
        return self.root(pulled).ravel() / self.n


class Gram(eqx.Module):
    """The same piece by piece: Bᵀu is summed over the pieces, then B is applied in each."""

    problem: Problem
    w: Array
    root: Root = eqx.field(static=True)
    pieces: Pieces = eqx.field(static=True)
    outputs: int = eqx.field(static=True)

    def _root(self, start: Start, size: int) -> Callable[[Array], Array]:
        return self.root(part(self.problem, start, size), self.w)

    def __call__(self, u: Array) -> Array:
        rows = u.reshape(self.pieces.n, self.outputs)

        def pull(start: Start, size: int) -> Array:
            cut = jax.lax.dynamic_slice_in_dim(rows, start, size)
            pulled: Array = jax.linear_transpose(self._root(start, size), self.w)(cut)[0]
            return pulled

        v = self.pieces.total(pull)
        return self.pieces.stacked(lambda start, size: self._root(start, size)(v)).ravel() / self.pieces.n


_linearised = eqx.filter_jit(lambda root, problem, w: jax.linearize(root(problem, w), jnp.zeros_like(w))[1])
_mapped = eqx.filter_jit(lambda root, problem, w: root(problem, w)(w))
