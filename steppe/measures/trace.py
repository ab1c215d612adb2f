"""tr ∇²L, exact, with its two parts."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.estimate import Estimate
from steppe.problems import Problem
from steppe.problems.networks.closed_form import ClosedForm

# Rows of a Jacobian, or columns of an identity, held at a time.
_ROWS = 64


def trace(problem: Problem, w: Array) -> Estimate:
    """tr ∇²L(w), exactly, with `parts` gauss_newton and residual.

    ∇²L = (1/n) Σᵢ [J_iᵀ ℓ″ J_i + Σ_c ℓ′_c ∇²f_c(xᵢ)]: the first part needs the gradient of each output, the second
    vanishes at an interpolator and, in trace, for networks of ReLU layers everywhere. Networks with a closed form
    cost one forward pass; the others one backward pass for each output and one product for each parameter.

    >>> import steppe
    >>> p = Problem(lambda w, x: w[0] * w[1] * x, jnp.ones(2), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)
    >>> trace(p, p.w0).value                                        # L = ½(w₁w₂ − 1)² at (1, 1)
    2.0
    """
    w = problem.vector(w)
    if isinstance(problem.predict, ClosedForm):
        gauss_newton, residual, products = *_closed_form(problem, w), 0
    else:
        independent = bool(_treats_examples_alone(problem, w))
        gauss_newton = _by_example(problem, w) if independent else _by_output(problem, w)
        residual, products = _residual(problem, w), w.size
    parts = {"gauss_newton": Estimate.exact(float(gauss_newton)), "residual": Estimate.exact(float(residual))}
    return Estimate.exact(float(gauss_newton + residual), matvecs=products, parts=parts)


@eqx.filter_jit
def _closed_form(problem: Problem, w: Array) -> tuple[Array, Array]:
    params = problem.unravel(w)
    f = problem.predict(params, problem.x)
    norms, laplacians = problem.predict.curvature(params, problem.x)  # type: ignore[attr-defined]
    slope = jax.grad(problem.criterion.example)
    slopes, bends = jax.vmap(slope)(f, problem.y), jax.vmap(jax.grad(slope))(f, problem.y)
    return jnp.mean(bends * norms), jnp.mean(slopes * laplacians)


@eqx.filter_jit
def _treats_examples_alone(problem: Problem, w: Array) -> Array:
    """Whether the first and last predictions are the same without the other examples (no batch statistics)."""
    together = problem.predictions(w)
    ends = jnp.array([0, len(problem) - 1])
    alone = jax.vmap(lambda i: _predict_one(problem, w, i))(ends)
    scale = jnp.max(jnp.abs(together)) * float(np.finfo(together.dtype).eps) ** 0.5
    return jnp.all(jnp.abs(alone - together[ends]) <= scale)


def _predict_one(problem: Problem, w: Array, i: Array) -> Array:
    x = jax.tree.map(lambda a: a[i][None], problem.x)
    return problem.predict(problem.unravel(w), x)[0]


@eqx.filter_jit
def _by_example(problem: Problem, w: Array) -> Array:
    """(1/n) Σᵢ ⟨ℓ″, J_i J_iᵀ⟩, one example's Jacobian at a time."""

    def one(i: Array) -> Array:
        f = _predict_one(problem, w, i)
        J = jax.jacrev(lambda v: _predict_one(problem, v, i).ravel())(w)
        bend = jax.hessian(lambda g: problem.criterion.example(g.reshape(f.shape), problem.y[i]))(f.ravel())
        return jnp.sum(bend * (J @ J.T))

    return jnp.mean(jax.lax.map(one, jnp.arange(len(problem)), batch_size=_ROWS))


@eqx.filter_jit
def _by_output(problem: Problem, w: Array) -> Array:
    """The same where examples see each other: ⟨∇²_f L, J Jᵀ⟩ with the Jacobian of all outputs at once."""
    f, pull = jax.vjp(lambda v: problem.predictions(v).ravel(), w)
    J = jax.lax.map(lambda row: pull(row)[0], jnp.eye(f.size, dtype=f.dtype), batch_size=_ROWS)
    shape = problem.predictions(w).shape
    bend = jax.hessian(lambda g: problem.criterion(g.reshape(shape), problem.y))(f)
    return jnp.sum(bend * (J @ J.T))


@eqx.filter_jit
def _residual(problem: Problem, w: Array) -> Array:
    """Σ_k eₖᵀ ∇²_w⟨ℓ′(f(w)), f(·)⟩ eₖ with ℓ′ frozen at w."""
    slopes = jax.grad(lambda f: problem.criterion(f, problem.y))(problem.predictions(w))

    def weighted(v: Array) -> Array:
        return jnp.vdot(slopes, problem.predictions(v))

    def diagonal(k: Array) -> Array:
        basis = jnp.zeros_like(w).at[k].set(1)
        return jax.jvp(jax.grad(weighted), (w,), (basis,))[1][k]

    return jnp.sum(jax.lax.map(diagonal, jnp.arange(w.size), batch_size=_ROWS))
