"""What rounding does to a difference of two losses, and the same problem in double precision, where it does less."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend import core

from steppe.linalg.operator import ROUNDING
from steppe.measures.equations import bodies, shaped, traced
from steppe.measures.operators.pieces import Pieces, Start, part
from steppe.problems import Problem
from steppe.problems.flat import ravel


def unit(problem: Problem) -> float:
    """The relative error of a computed loss: 16 ulp of the narrowest real numbers that the network works with."""
    leaves, structure = jax.tree.flatten(problem)
    return _unit(structure, tuple((a.shape, a.dtype) for a in leaves), jax.dtypes.canonicalize_dtype(float))


@lru_cache(maxsize=256)  # a network is looked at once, not at every step of a trajectory
def _unit(structure: Any, shapes: tuple[tuple[tuple[int, ...], Any], ...], widest: Any) -> float:
    problem = jax.tree.unflatten(structure, [shaped(*s) for s in shapes])
    closed = traced(lambda problem: problem.loss(problem.w0), problem)
    dtypes = {problem.w0.dtype, *problem.unravel.dtypes, *_reals(closed)}
    return ROUNDING * max(float(jnp.finfo(dtype).eps) for dtype in dtypes)  # type: ignore[no-untyped-call]


def _reals(closed: core.ClosedJaxpr) -> Iterator[jnp.dtype]:
    for equation in closed.jaxpr.eqns:
        yield from (v.aval.dtype for v in equation.outvars if jnp.issubdtype(v.aval.dtype, jnp.floating))
        for body in bodies(equation):
            yield from _reals(body)


def rounding(problem: Problem, w: Array, pieces: Pieces, moves: Array) -> float:
    """A bound on the error of a computed L(w + move) − L(w), for moves like the rows given.

    An example's computed loss is that of parameters and predictions with relative errors of `unit`, layer by layer
    (Higham 2002, section 3.5), rounded once more: it is off by unit · (|ℓᵢ| + ‖∇ℓᵢ ⊙ w‖ + ‖∇_f ℓᵢ ⊙ f‖). The norms are
    those of products with random signs, and the largest sum over the moves counts.
    """
    u = unit(problem)
    size = float(_condition(problem, w, pieces, moves, jnp.asarray(u, w.dtype)))
    return u * size if np.isfinite(size) else np.inf


@eqx.filter_jit
def _condition(problem: Problem, w: Array, pieces: Pieces, moves: Array, u: Array) -> Array:
    def one(row: tuple[Array, Array]) -> Array:
        move, draw = row
        spread, signs, outer = jax.random.split(draw, 3)
        # Where the slope is zero it is not so at the parameters that w may have been rounded to.
        v = w + move + u * jnp.abs(w) * jax.random.normal(spread, w.shape, w.dtype)
        tangent = v * jax.random.rademacher(signs, w.shape, w.dtype)

        def summed(start: Start, size: int) -> Array:
            piece = part(problem, start, size)
            f, df = jax.jvp(piece.predictions, (v,), (tangent,))
            df = df + f * jax.random.rademacher(outer, f.shape, f.dtype)
            values, slopes = jax.jvp(lambda f: jax.vmap(problem.criterion.example)(f, piece.y), (f,), (df,))
            return jnp.sum(jnp.abs(values) + jnp.abs(slopes))

        return pieces.total(summed) / pieces.n

    return jnp.max(jax.lax.map(one, (moves, jax.random.split(jax.random.key(0), len(moves)))))


def in_double(problem: Problem, w: Array) -> tuple[Problem, Array] | None:
    """The same problem and parameters in float64, for use while JAX runs in 64 bits; None where nothing is gained, in a
    network that is in float64 already or that fixes its own precision."""

    def wide(a: Array) -> np.ndarray:
        return np.asarray(a, np.float64) if jnp.issubdtype(a.dtype, jnp.floating) else np.asarray(a)

    params, x = (jax.tree.map(wide, tree) for tree in (problem.unravel(w), problem.x))
    try:
        other = Problem(problem.predict, params, x, np.asarray(problem.y), problem.criterion)
        narrower = unit(other) < unit(problem)
    except TypeError:  # constants of its own in float32, where JAX mixes no precisions
        return None
    return (other, ravel(params)[0]) if narrower else None
