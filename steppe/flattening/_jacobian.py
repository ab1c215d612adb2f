"""The Jacobian of a network for the rescaling problems: as a matrix, by products with blocks, or as squares of columns.

B/√n is the root of the Gauss-Newton matrix G = BᵀB/n.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check
from steppe.curvature import gauss_newton
from steppe.curvature._matrices import rank, score_root
from steppe.curvature._operator import MEMORY, settled
from steppe.curvature._statistics import FULL_BATCH, Pieces, Start, part, treats_examples_alone
from steppe.flattening._squares import entries, squares
from steppe.problem import Problem
from steppe.training_set import Floats

# Examples of a piece with random signs of its own: fewer mean less noise, and more passes.
_PIECE = 4

# Vectors multiplied at a time.
_COLUMNS = 12

# Entries of a Jacobian. With at most _SMALL it is formed at once; _HELD are held at a time while its rows are squared;
# no Jacobian of more than KEPT is ever formed. 8 MB, 128 MB and 1 GB in float64.
_SMALL, _HELD, KEPT = 2**20, 2**24, 2**27


@dataclass(frozen=True, eq=False)
class Jacobian:
    """The `kept` columns of B/√n, (n · outputs, kept), known by products with blocks of vectors."""

    problem: Problem
    w: Array
    kept: NDArray[np.bool_]
    pieces: Pieces
    rows: int

    @classmethod
    def of(cls, problem: Problem, w: Array, kept: NDArray[np.bool_]) -> "Jacobian":
        memory = MEMORY / _COLUMNS
        _, w, pieces = settled(gauss_newton.model, problem, w, statistics=FULL_BATCH, memory=memory)
        return cls(problem, w, kept, pieces, rank(gauss_newton, problem, w))

    def pull(self, V: Floats) -> Floats:
        """BᵀV/√n, (kept, r)."""
        rows = jnp.asarray(V.T.reshape(V.shape[1], len(self.problem), -1), self.w.dtype)
        blocks = [_pull(self.problem, self.w, self.pieces, rows[k : k + _COLUMNS]) for k in self._starts(V)]
        return np.concatenate(blocks).T[self.kept].astype(float) / np.sqrt(len(self.problem))

    def push(self, Y: Floats) -> Floats:
        """BY/√n, (rows, r)."""
        whole = np.zeros((Y.shape[1], self.w.size))
        whole[:, self.kept] = Y.T
        rows = jnp.asarray(whole, self.w.dtype)
        blocks = [_push(self.problem, self.w, self.pieces, rows[k : k + _COLUMNS]) for k in self._starts(Y)]
        pushed = np.concatenate(blocks, axis=1).astype(float).swapaxes(1, 2)
        return pushed.reshape(self.rows, -1) / np.sqrt(len(self.problem))

    def _starts(self, V: Floats) -> range:
        return range(0, V.shape[1], _COLUMNS)


@eqx.filter_jit
def _pull(problem: Problem, w: Array, pieces: Pieces, rows: Array) -> Array:
    """(r, n, outputs) to (r, parameters)."""

    def summed(start: Start, size: int) -> Array:
        back = jax.linear_transpose(score_root(part(problem, start, size), w), w)
        return jax.vmap(lambda u: back(u)[0])(jax.lax.dynamic_slice_in_dim(rows, start, size, axis=1))

    return pieces.total(summed)


@eqx.filter_jit
def _push(problem: Problem, w: Array, pieces: Pieces, rows: Array) -> Array:
    """(r, parameters) to (n, r, outputs)."""

    def pushed(start: Start, size: int) -> Array:
        return jax.vmap(score_root(part(problem, start, size), w), out_axes=1)(rows)

    return pieces.stacked(pushed)


def diagonal(problem: Problem, w: Array) -> Floats:
    """G_kk of all parameters, by one backward pass for each output of each example (see `squares`).

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
    # A last piece of another size needs a compilation, which for convolutions takes longer than the run.
    at_once = next((size for size in range(most, most // 2, -1) if n % size == 0), most)
    return np.asarray(route(problem, w, Pieces(n, at_once)), dtype=float) / n


def drawn_squares(problem: Problem, w: Array, seed: int) -> Floats:
    """Σ (Bᵀv)_k²/n over pieces of the examples, each with random signs v of its own: its mean is G_kk."""
    n, alone = len(problem), treats_examples_alone(problem, w)
    pieces = Pieces(n, next(size for size in range(min(n, _PIECE), 0, -1) if n % size == 0) if alone else n)
    return np.asarray(_drawn(problem, w, pieces, jax.random.key(seed)), dtype=float) / n


@eqx.filter_jit
def _drawn(problem: Problem, w: Array, pieces: Pieces, key: Array) -> Array:
    def squared(start: Start, size: int) -> Array:
        product = score_root(part(problem, start, size), w)
        signs = jax.random.rademacher(jax.random.fold_in(key, start), jax.eval_shape(product, w).shape, w.dtype)
        (slopes,) = jax.linear_transpose(product, w)(signs)
        return slopes**2

    return pieces.total(squared)


def root(problem: Problem, w: Array) -> Floats:
    """B/√n, (n · outputs, parameters)."""
    rows = rank(gauss_newton, problem, w)
    if rows * w.size > KEPT:
        check.refuse(
            "problem",
            f"one whose Jacobian has at most {KEPT:,} entries, because batch statistics couple the examples",
            f"{rows:,} × {w.size:,}",
            "Flatten on fewer examples: problem.on(x[:k], y[:k]).",
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
