"""Traces without an error: every diagonal entry, or every row of a Jacobian, once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.curvature._backend import ExactTraces
from steppe.curvature._inputs import refuse_kinked_loss
from steppe.curvature._operator import Curvature, Root, held, settled
from steppe.curvature._statistics import Pieces, Statistics, part, treats_examples_alone
from steppe.networks import ClosedForm
from steppe.problem import Problem

# Rows of a Jacobian, or columns of an identity, held at a time.
_ROWS = 64

# Entries of the Jacobian of all outputs up to which computing it is no dearer than estimating: seconds of one core.
_ENTRIES = 4e9


@dataclass(frozen=True, eq=False)
class JaxTraces(ExactTraces):
    """The exact traces of a JAX problem."""

    problem: Problem
    w: Array
    statistics: Statistics
    memory: float
    treated: Problem  # the problem with its batch statistics treated
    pieces: Pieces
    at_once: int  # products whose intermediate values fit into the memory together

    @classmethod
    def of(
        cls, curvature: Curvature, problem: Problem, w: Array | None, *, statistics: Statistics, memory: float
    ) -> "JaxTraces":
        treated, w, pieces = settled(curvature.model, problem, w, statistics=statistics, memory=memory)
        refuse_kinked_loss(treated, w)
        at_once = int(memory // max(1, held(curvature.model, treated, w)))
        return cls(problem, w, statistics, memory, treated, pieces, at_once)

    def closed_form(self) -> tuple[np.floating, np.floating] | None:
        """(tr G, tr R) if the network has a formula for ‖∇f‖² and Δf."""
        if not isinstance(self.treated.predict, ClosedForm):
            return None
        gauss_newton, residual = _closed_form(self.treated, self.w)
        return _number(gauss_newton), _number(residual)

    def is_cheap(self, passes: int) -> bool:
        """Whether all rows of the Jacobian cost no more than `passes` products.

        A row takes the backward pass of its own example, or of all examples if they see each other.
        """
        if treats_examples_alone(self.treated, self.w):
            return _outputs(self.treated, self.w) * self.w.size <= _ENTRIES
        return _outputs(self.treated, self.w) * self.pieces.size <= passes * len(self.treated)

    def gauss_newton(self) -> np.floating:
        """(1/n) Σᵢ ⟨ℓ″, J_i J_iᵀ⟩."""
        if treats_examples_alone(self.treated, self.w):
            return _number(_by_example(self.treated, self.w))
        return _number(_by_output(self.treated, self.w, self.pieces))

    def rooted(self, root: Root) -> np.floating:
        """‖B‖_F²/n = tr (1/n) BᵀB."""
        if treats_examples_alone(self.treated, self.w):
            return _number(_rows_by_example(root, self.treated, self.w))
        return _number(_rows(root, self.treated, self.w, self.pieces))

    def diagonal(self, curvature: Curvature) -> np.floating:
        """Σ_k eₖᵀ A eₖ, one product for each parameter."""
        operator = curvature(self.problem, self.w, statistics=self.statistics, memory=self.memory)
        return _number(_diagonal_sum(operator.product, self.w, self.at_once))


def _number(value: Array) -> np.floating:
    number: np.floating = np.asarray(value)[()]  # type: ignore[assignment]
    return number


def _outputs(problem: Problem, w: Array) -> int:
    """The number of rows of the Jacobian of all outputs."""
    shape = eqx.filter_eval_shape(lambda problem, w: problem.predictions(w), problem, w).shape
    return int(np.prod(shape))


@eqx.filter_jit
def _closed_form(problem: Problem, w: Array) -> tuple[Array, Array]:
    predict: Any = problem.predict
    params = problem.unravel(w)
    f = predict(params, problem.x)
    norms, laplacians = predict.curvature(params, problem.x)
    slope = jax.grad(problem.loss_function.example)
    slopes, bends = jax.vmap(slope)(f, problem.y), jax.vmap(jax.grad(slope))(f, problem.y)
    return jnp.mean(bends * norms), jnp.mean(slopes * laplacians)


@eqx.filter_jit
def _by_example(problem: Problem, w: Array) -> Array:
    """One example's Jacobian at a time."""

    def one(i: Array) -> Array:
        alone = part(problem, i, 1)
        f, y = alone.predictions(w)[0], alone.y[0]
        J = jax.jacrev(lambda v: alone.predictions(v).ravel())(w)
        bend = jax.hessian(lambda g: problem.loss_function.example(g.reshape(f.shape), y))(f.ravel())
        return jnp.sum(bend * (J @ J.T))

    return jnp.mean(jax.lax.map(one, jnp.arange(len(problem)), batch_size=_batch(problem, w)))


@eqx.filter_jit
def _by_output(problem: Problem, w: Array, pieces: Pieces) -> Array:
    """The same if examples see each other: the rows of one example come from backward passes through all of them."""

    def one(piece: Problem) -> Array:
        f, rows = _pulled(piece.predictions, w)

        def example(i: Array) -> Array:
            J, y, shape = rows(i), piece.y[i], f.shape[1:]
            bend = jax.hessian(lambda g: piece.loss_function.example(g.reshape(shape), y))(f[i].ravel())
            return jnp.sum(bend * (J @ J.T))

        return jnp.mean(jax.lax.map(example, jnp.arange(len(piece))))

    return pieces.mean(problem, one)


def _pulled(function: Callable[[Array], Array], w: Array) -> tuple[Array, Callable[[Array], Array]]:
    """function(w), with one row an example, and i ↦ the Jacobian of its i-th row."""
    f, pull = jax.vjp(function, w)
    width = f[0].size
    units = jnp.eye(width, dtype=f.dtype).reshape(width, *f.shape[1:])

    def rows(i: Array) -> Array:
        return jax.vmap(lambda unit: pull(jnp.zeros_like(f).at[i].set(unit))[0])(units)

    return f, rows


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
    """The number of examples whose Jacobians are held at a time: at most 2²⁵ entries, 256 MB in float64."""
    return max(1, min(_ROWS, 2**25 * len(problem) // max(1, _outputs(problem, w) * w.size)))


@eqx.filter_jit
def _diagonal_sum(product: Callable[[Array], Array], w: Array, at_once: int) -> Array:
    def entry(k: Array) -> Array:
        return product(jnp.zeros_like(w).at[k].set(1))[k]

    return jnp.sum(jax.lax.map(entry, jnp.arange(w.size), batch_size=max(1, min(_ROWS, at_once))))
