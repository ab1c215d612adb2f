"""Traces without an error: every diagonal entry, or every row of a Jacobian, once."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.measures.operators.coupling import treats_examples_alone
from steppe.measures.operators.curvature import Root
from steppe.measures.operators.pieces import Pieces, part
from steppe.problems import Problem
from steppe.problems.networks.closed_form import ClosedForm

# Rows of a Jacobian, or columns of an identity, held at a time.
_ROWS = 64

# Entries of the Jacobian of all outputs that are no dearer to walk through than estimating: seconds of one core.
_ENTRIES = 4e9


def walkable(problem: Problem, w: Array, pieces: Pieces, passes: int) -> bool:
    """Whether going through all rows of the Jacobian is no dearer than estimating by so many products.

    A row takes the backward pass of its own example, or of all that see each other.
    """
    if treats_examples_alone(problem, w):
        return outputs(problem, w) * w.size <= _ENTRIES
    return outputs(problem, w) * pieces.size <= passes * len(problem)


def outputs(problem: Problem, w: Array) -> int:
    """The number of rows of the Jacobian of all outputs."""
    shape = eqx.filter_eval_shape(lambda problem, w: problem.predictions(w), problem, w).shape
    return int(np.prod(shape))


@eqx.filter_jit
def closed_form(problem: Problem, w: Array) -> tuple[Array, Array]:
    """(tr G, tr R) of a network that knows ‖∇f‖² and Δf."""
    assert isinstance(problem.predict, ClosedForm)
    params = problem.unravel(w)
    f = problem.predict(params, problem.x)
    norms, laplacians = problem.predict.curvature(params, problem.x)
    slope = jax.grad(problem.criterion.example)
    slopes, bends = jax.vmap(slope)(f, problem.y), jax.vmap(jax.grad(slope))(f, problem.y)
    return jnp.mean(bends * norms), jnp.mean(slopes * laplacians)


def gauss_newton_trace(problem: Problem, w: Array, pieces: Pieces) -> Array:
    """(1/n) Σᵢ ⟨ℓ″, J_i J_iᵀ⟩."""
    return _by_example(problem, w) if treats_examples_alone(problem, w) else _by_output(problem, w, pieces)


@eqx.filter_jit
def _by_example(problem: Problem, w: Array) -> Array:
    """One example's Jacobian at a time."""

    def one(i: Array) -> Array:
        alone = part(problem, i, 1)
        f, y = alone.predictions(w)[0], alone.y[0]
        J = jax.jacrev(lambda v: alone.predictions(v).ravel())(w)
        bend = jax.hessian(lambda g: problem.criterion.example(g.reshape(f.shape), y))(f.ravel())
        return jnp.sum(bend * (J @ J.T))

    return jnp.mean(jax.lax.map(one, jnp.arange(len(problem)), batch_size=_batch(problem, w)))


@eqx.filter_jit
def _by_output(problem: Problem, w: Array, pieces: Pieces) -> Array:
    """The same where examples see each other: the rows of an example's outputs by backward passes through them all."""

    def one(piece: Problem) -> Array:
        f, rows = _pulled(piece.predictions, w)

        def example(i: Array) -> Array:
            J, y, shape = rows(i), piece.y[i], f.shape[1:]
            bend = jax.hessian(lambda g: piece.criterion.example(g.reshape(shape), y))(f[i].ravel())
            return jnp.sum(bend * (J @ J.T))

        return jnp.mean(jax.lax.map(example, jnp.arange(len(piece))))

    return pieces.mean(problem, one)


def _pulled(function: Callable[[Array], Array], w: Array) -> tuple[Array, Callable[[Array], Array]]:
    """function(w), one row an example, and i ↦ the Jacobian of its i-th row."""
    f, pull = jax.vjp(function, w)
    width = f[0].size
    units = jnp.eye(width, dtype=f.dtype).reshape(width, *f.shape[1:])

    def rows(i: Array) -> Array:
        return jax.vmap(lambda unit: pull(jnp.zeros_like(f).at[i].set(unit))[0])(units)

    return f, rows


def squared_rows(root: Root, problem: Problem, w: Array, pieces: Pieces) -> Array:
    """‖B‖_F²/n = tr (1/n) BᵀB."""
    return _rows_by_example(root, problem, w) if treats_examples_alone(problem, w) else _rows(root, problem, w, pieces)


@eqx.filter_jit
def _rows_by_example(root: Root, problem: Problem, w: Array) -> Array:
    def one(i: Array) -> Array:
        return jnp.sum(jax.jacrev(root(part(problem, i, 1), w))(w) ** 2)

    return jnp.mean(jax.lax.map(one, jnp.arange(len(problem)), batch_size=_batch(problem, w)))


@eqx.filter_jit
def _rows(root: Root, problem: Problem, w: Array, pieces: Pieces) -> Array:
    def one(piece: Problem) -> Array:
        _, rows = _pulled(root(piece, w), w)
        return jnp.mean(jax.lax.map(lambda i: jnp.sum(rows(i) ** 2), jnp.arange(len(piece))))

    return pieces.mean(problem, one)


def _batch(problem: Problem, w: Array) -> int:
    """Examples whose Jacobians are held at a time: not more than 2²⁵ entries, 256 MB in float64."""
    return max(1, min(_ROWS, 2**25 * len(problem) // max(1, outputs(problem, w) * w.size)))


@eqx.filter_jit
def diagonal_sum(product: Callable[[Array], Array], w: Array, at_once: int) -> Array:
    """Σ_k eₖᵀ A eₖ, not more than `at_once` products at a time."""

    def entry(k: Array) -> Array:
        return product(jnp.zeros_like(w).at[k].set(1))[k]

    return jnp.sum(jax.lax.map(entry, jnp.arange(w.size), batch_size=max(1, min(_ROWS, at_once))))
