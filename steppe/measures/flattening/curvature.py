"""The Gauss-Newton matrix G = BᵀB/n of a problem: its diagonal, and its root B/√n."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check
from steppe.linalg.rescaling import Floats
from steppe.measures.flattening.squares import entries, squares
from steppe.measures.operators.coupling import treats_examples_alone
from steppe.measures.operators.gauss_newton import gauss_newton
from steppe.measures.operators.gram import rank
from steppe.measures.operators.pieces import Pieces, Start, part
from steppe.problems import Problem

# Entries of a Jacobian that is not worth the trouble, held at a time while walking through it, and kept: 8 MB, 128 MB
# and 1 GB in float64.
_SMALL, _HELD, KEPT = 2**20, 2**24, 2**27


def diagonal(problem: Problem, w: Array) -> Floats:
    """G_kk of every parameter, by one backward pass for each output of each example (see `squares`).

    >>> import steppe
    >>> p = Problem(lambda w, x: x @ w, jnp.ones(2), jnp.array([[3.0, 4.0]]), jnp.ones(1), steppe.losses.half_mse)
    >>> diagonal(p, p.w0).tolist()
    [9.0, 16.0]
    """
    n, rows = len(problem), rank(gauss_newton, problem, w)
    if rows * w.size <= _SMALL or not treats_examples_alone(problem, w):
        return np.sum(root(problem, w) ** 2, axis=0)
    each = entries(problem, w, rows // n)
    route, held = (_squares, rows * w.size // n) if each is None else (squares, each)
    most = min(n, max(1, _HELD // held))
    # A ragged last piece would be compiled as well, which for convolutions takes longer than to run it.
    at_once = next((size for size in range(most, most // 2, -1) if n % size == 0), most)
    return np.asarray(route(problem, w, Pieces(n, at_once)), dtype=float) / n


def root(problem: Problem, w: Array) -> Floats:
    """B/√n, (n · outputs, parameters)."""
    rows = rank(gauss_newton, problem, w)
    if rows * w.size > KEPT:
        check.refuse(
            "problem",
            f"of at most {KEPT:,} entries in the Jacobian of all outputs, with batch statistics",
            f"{rows:,} × {w.size:,}",
            "Flatten on fewer examples, problem.on(x[:k], y[:k]).",
        )
    J = _root(problem, w, treats_examples_alone(problem, w))
    return np.asarray(J, dtype=float) / np.sqrt(len(problem))


def _jacobian(problem: Problem, w: Array) -> Array:
    assert gauss_newton.root is not None
    J: Array = jax.jacrev(gauss_newton.root(problem, w))(w)
    return J.reshape(-1, w.size)


def _by_example(problem: Problem, w: Array) -> Array:
    """(examples, outputs, parameters)."""
    return jax.vmap(lambda i: _jacobian(part(problem, i, 1), w))(jnp.arange(len(problem)))


@eqx.filter_jit
def _squares(problem: Problem, w: Array, pieces: Pieces) -> Array:
    def summed(start: Start, size: int) -> Array:
        return jnp.sum(_by_example(part(problem, start, size), w) ** 2, axis=(0, 1))

    return pieces.total(summed)


@eqx.filter_jit
def _root(problem: Problem, w: Array, alone: bool) -> Array:
    return _by_example(problem, w).reshape(-1, w.size) if alone else _jacobian(problem, w)
