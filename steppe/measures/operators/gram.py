"""The small twin: A = (1/n) BᵀB and K = (1/n) BBᵀ share all eigenvalues but zeros."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check
from steppe.measures.inputs import prepared
from steppe.measures.operators.curvature import MEMORY, Curvature, Root, held, settled
from steppe.measures.operators.gauss_newton import gauss_newton, has_root
from steppe.measures.operators.operator import Operator
from steppe.measures.operators.pieces import Pieces, Start, part
from steppe.measures.operators.statistics import FULL_BATCH, Statistics
from steppe.measures.smoothness import refuse_kinked_loss
from steppe.problems import Problem


def gram(
    curvature: Curvature, problem: Problem, w: Array, *, statistics: Statistics = FULL_BATCH, memory: float = MEMORY
) -> Operator:
    """K = (1/n) BBᵀ, (n·r) × (n·r), for the Gauss-Newton and Fisher matrices; r is the number of outputs, or 1 for
    the empirical Fisher matrix. For one example and half_mse it is the number ‖∇f‖².

    >>> import steppe
    >>> from steppe.measures.operators import gauss_newton
    >>> x, y = jnp.array([[3.0, 4.0]]), jnp.zeros(1)
    >>> p = Problem(lambda w, x: x @ w, jnp.ones(2), x, y, steppe.losses.half_mse)
    >>> gram(gauss_newton, p, p.w0).dense().tolist()
    [[25.0]]
    """
    if curvature.root is None:
        check.refuse(
            "curvature", "gauss_newton, fisher or empirical_fisher", curvature.name, "Only A = BᵀB has a Gram matrix."
        )
    meant, w, pieces = settled(curvature.model, problem, w, statistics=statistics, memory=memory)
    refuse_kinked_loss(meant, w)
    outputs = rank(curvature, meant, w) // len(meant)
    product: Linearised | Gram = Gram(meant, w, curvature.root, pieces, outputs)
    if pieces.whole and held(curvature.model, meant, w) <= memory:
        product = Linearised(_linearised(curvature.root, meant, w), len(meant), w)
    return Operator(product, len(meant) * outputs, w.dtype, f"{curvature.name} gram", statistics)


def rank(curvature: Curvature, problem: Problem, w: Array) -> int:
    """n·r, an upper bound on the rank."""
    assert curvature.root is not None
    return int(np.prod(eqx.filter_eval_shape(_mapped, curvature.root, problem, w).shape))


def smaller(
    curvature: Curvature, problem: Problem, w: Array, *, statistics: Statistics = FULL_BATCH, memory: float = MEMORY
) -> Operator:
    """The Gram matrix where there is one and it is smaller than the matrix itself, which it replaces for everything
    that depends on the non-zero eigenvalues only."""
    rooted = curvature.root is not None and (curvature is not gauss_newton or has_root(problem))
    if rooted and rank(curvature, problem, prepared(problem, w)) < problem.w0.size:
        return gram(curvature, problem, w, statistics=statistics, memory=memory)
    return curvature(problem, w, statistics=statistics, memory=memory)


class Linearised(eqx.Module):
    """u ↦ (1/n) B Bᵀu with B linearised once."""

    root: Any
    n: int = eqx.field(static=True)
    w: Array

    def __call__(self, u: Array) -> Array:
        shape = jax.eval_shape(self.root, self.w)
        (pulled,) = jax.linear_transpose(self.root, self.w)(u.reshape(shape.shape))
        return self.root(pulled).ravel() / self.n


class Gram(eqx.Module):
    """The same piece by piece: Bᵀu summed over the pieces, then B applied in each."""

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
