"""tr ∇²L with its two parts: exact where that is affordable, else estimated."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check, linalg
from steppe._random import Key, generator
from steppe.curvature import FULL_BATCH, MEMORY, Curvature, Statistics, gauss_newton, hessian, residual
from steppe.curvature._operator import Root, held, settled
from steppe.curvature._smoothness import refuse_kinked_loss
from steppe.curvature._statistics import Pieces, part, treats_examples_alone
from steppe.estimate import Accuracy, Estimate
from steppe.measures._policy import check_policy, measured
from steppe.networks import ClosedForm
from steppe.problem import Problem

# Traces without an error: every diagonal entry, or every row of a Jacobian, once.

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
    slope = jax.grad(problem.loss_function.example)
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
        bend = jax.hessian(lambda g: problem.loss_function.example(g.reshape(f.shape), y))(f.ravel())
        return jnp.sum(bend * (J @ J.T))

    return jnp.mean(jax.lax.map(one, jnp.arange(len(problem)), batch_size=_batch(problem, w)))


@eqx.filter_jit
def _by_output(problem: Problem, w: Array, pieces: Pieces) -> Array:
    """The same where examples see each other: the rows of an example's outputs by backward passes through them all."""

    def one(piece: Problem) -> Array:
        f, rows = _pulled(piece.predictions, w)

        def example(i: Array) -> Array:
            J, y, shape = rows(i), piece.y[i], f.shape[1:]
            bend = jax.hessian(lambda g: piece.loss_function.example(g.reshape(shape), y))(f[i].ravel())
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


# tr ∇²L, with its two parts.


def trace(
    problem: Problem,
    w: Array,
    *,
    rtol: float = 0.05,
    confidence: float = 0.99,
    max_matvecs: int = 1000,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> Estimate:
    """tr ∇²L(w), with `parts` gauss_newton and residual.

    ∇²L = (1/n) Σᵢ [J_iᵀ ℓ″ J_i + Σ_c ℓ′_c ∇²f_c(xᵢ)]: the first part needs the gradient of each output, the second
    vanishes at an interpolator and, in trace, for networks of ReLU layers everywhere.

    Exact where that is affordable: for networks with a closed form (one forward pass), and for at most `max_matvecs`
    parameters (a product for each, or a backward pass for each output). Otherwise the first part is exact if the
    Jacobian is small enough to walk through, and XTrace estimates the rest, to an interval of relative width rtol
    that holds the truth with probability `confidence`; within `memory`, which at millions of parameters may end it
    before that width.

    >>> import jax.numpy as jnp, steppe
    >>> p = Problem(lambda w, x: w[0] * w[1] * x, jnp.ones(2), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)
    >>> trace(p, p.w0).value                                        # L = ½(w₁w₂ − 1)² at (1, 1)
    2.0

    Epperly, Tropp and Webber 2024 for XTrace.
    """
    check_policy(
        problem, rtol=rtol, confidence=confidence, max_matvecs=max_matvecs,
        statistics=statistics, memory=memory, key=key,
    )  # fmt: skip
    meant, w, pieces = settled(residual.model, problem, w, statistics=statistics, memory=memory)
    max_matvecs = check.integer("max_matvecs", max_matvecs, minimum=1)
    refuse_kinked_loss(meant, w)
    if isinstance(meant.predict, ClosedForm):
        return measured(_sum(*closed_form(meant, w), matvecs=0), statistics)
    walked = walkable(meant, w, pieces, max_matvecs)
    if w.size <= max_matvecs:
        at_once = int(memory // max(1, held(residual.model, meant, w)))

        def summed(part: Curvature) -> Array:
            return diagonal_sum(part(problem, w, statistics=statistics, memory=memory).product, w, at_once)

        known = gauss_newton_trace(meant, w, pieces) if walked else summed(gauss_newton)
        return measured(_sum(known, summed(residual), matvecs=w.size if walked else 2 * w.size), statistics)
    if not walked:
        return measured(_both_estimated(problem, w, rtol, confidence, max_matvecs, statistics, memory, key), statistics)
    known = gauss_newton_trace(meant, w, pieces)
    rest = residual(problem, w, statistics=statistics, memory=memory)
    # tr(R + g/p I) = tr ∇²L: the accuracy asked for is that of the sum, and a multiple of I has no variance.
    shift = np.asarray(known)[()] / w.size
    total = linalg.xtrace(
        lambda v: rest(v) + shift * np.asarray(v, w.dtype),
        w.size,
        accuracy=Accuracy(rtol, confidence, max_matvecs),
        memory=memory,
        key=generator(key),
    )
    return measured(_split(total, Estimate.exact(float(known))), statistics)


def _sum(gauss_newton: Array, residual: Array, *, matvecs: int) -> Estimate:
    parts = {"gauss_newton": Estimate.exact(float(gauss_newton)), "residual": Estimate.exact(float(residual))}
    return Estimate.exact(float(gauss_newton + residual), matvecs=matvecs, parts=parts)


def _both_estimated(
    problem: Problem,
    w: Array,
    rtol: float,
    confidence: float,
    max_matvecs: int,
    statistics: Statistics,
    memory: float,
    key: Key,
) -> Estimate:
    rng = generator(key)
    total, known = (
        linalg.xtrace(
            curvature(problem, w, statistics=statistics, memory=memory),
            w.size,
            accuracy=Accuracy(rtol, confidence, max_matvecs),
            memory=memory,
            key=rng,
        )
        for curvature in (hessian, gauss_newton)
    )
    return _split(total, known)


def _split(total: Estimate, known: Estimate) -> Estimate:
    """The total with its parts; the residual one is the difference, and holds where both others do."""
    difference = Estimate(
        total.value - known.value,
        total.lower - known.upper,
        total.upper - known.lower,
        total.confidence + known.confidence - 1.0,
        converged=total.converged and known.converged,
    )
    return Estimate(
        total.value,
        total.lower,
        total.upper,
        total.confidence,
        total.matvecs + known.matvecs,
        {"gauss_newton": known, "residual": difference},
        total.converged,
    )
