"""B/√n of a problem, known by its products with blocks of vectors."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe.linalg.rescaling import Floats
from steppe.measures.operators.curvature import MEMORY, settled
from steppe.measures.operators.fisher import score_root
from steppe.measures.operators.gauss_newton import gauss_newton
from steppe.measures.operators.gram import rank
from steppe.measures.operators.pieces import Pieces, Start, part
from steppe.measures.operators.statistics import FULL_BATCH
from steppe.problems import Problem

# Vectors multiplied at a time.
_COLUMNS = 12


@dataclass(frozen=True, eq=False)
class Jacobian:
    """The columns that are `kept` of B/√n, (n · outputs, kept)."""

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
