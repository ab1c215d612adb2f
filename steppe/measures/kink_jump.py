"""How far the Hessian jumps where pre-activations that are within rounding of a kink switch sides."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe.measures.kink_sites import shifted, sites
from steppe.problems import Problem

# Products of a power iteration: a lower bound on a norm, some per cent below it.
ROUNDS = 4
# Examples that cost no more than fewer of them.
_FEW = 32


@dataclass(frozen=True, eq=False)
class Entries:
    """Pre-activations of one site: their indices into it (count, axes), the axis of examples, and how far to move
    each so that it crosses its kink."""

    at: NDArray[np.int64]
    axis: int | None
    values: NDArray[np.float64]
    steps: NDArray[np.float64]

    def only(self, chosen: NDArray[np.bool_]) -> "Entries":
        return replace(self, at=self.at[chosen], values=self.values[chosen], steps=self.steps[chosen])


@dataclass(frozen=True, eq=False)
class Block:
    """Some examples, with all entries on them; `rows[k]` tells which of site k, `places[k]` where in its layer."""

    problem: Problem
    share: float
    rows: list[NDArray[np.int64]]
    places: list[tuple[NDArray[np.int64], ...]]


def blocks(problem: Problem, entries: Sequence[Entries], most: int, everyone: bool) -> Iterator[Block]:
    """The examples that have an entry, or all of them with `everyone`, at most so many at a time.

    A power of two, filled up with an example that does not move, so that few shapes are compiled.
    """
    n = len(problem)
    affected = np.arange(n) if everyone else np.unique(np.concatenate([e.at[:, e.axis] for e in entries if len(e.at)]))
    for start in range(0, len(affected), most):
        examples = affected[start : start + most]
        size = len(examples) if everyone else min(most, max(_FEW, 1 << (len(examples) - 1).bit_length()))
        index = np.concatenate([examples, np.full(size - len(examples), examples[0])])
        x, y = _taken((problem.x, problem.y), jnp.asarray(index))
        rows, places = [], []
        for e in entries:
            at = e.at.copy()
            here = np.ones(len(at), dtype=bool)
            if e.axis is not None:
                here = np.isin(at[:, e.axis], examples)
                at[:, e.axis] = np.searchsorted(examples, at[:, e.axis])
            rows.append(np.flatnonzero(here))
            places.append(tuple(at[here].T))
        yield Block(eqx.tree_at(lambda p: (p.x, p.y), problem, (x, y)), size / n, rows, places)


@jax.jit
def direction(w: Array) -> Array:
    """One that the network does not know."""
    return jnp.cos(jnp.arange(w.size, dtype=w.dtype))


def moves(around: Sequence[Block], w: Array, entries: Sequence[Entries]) -> list[NDArray[np.float64]]:
    """How each pre-activation moves with w in that direction."""
    result = [np.zeros(len(e.at)) for e in entries]
    for block in around:
        for k, tangent in enumerate(_moves(block.problem, w)):
            result[k][block.rows[k]] = np.asarray(tangent, dtype=float)[block.places[k]]
    return result


def shifts(block: Block, w: Array, entries: Sequence[Entries]) -> list[Array]:
    shapes = eqx.filter_eval_shape(_moves, block.problem, w)
    result = []
    for shape, e, rows, places in zip(shapes, entries, block.rows, block.places, strict=True):
        shift = np.zeros(shape.shape)
        shift[places] = e.steps[rows]
        result.append(jnp.asarray(shift, shape.dtype))
    return result


def exceeds(around: Sequence[Block], w: Array, entries: Sequence[Entries], limit: float) -> bool:
    """Whether ‖H₊ − H₋‖ > limit, or ‖g₊ − g₋‖ > limit × ‖w‖, between the two sides."""
    far = limit * float(np.linalg.norm(w))
    u = np.asarray(direction(w))
    for _ in range(ROUNDS):
        u = u / np.linalg.norm(u)
        slope, product = np.zeros_like(u), np.zeros_like(u)
        for block in around:
            here = _jump(block.problem, w, shifts(block, w, entries), jnp.asarray(u))
            slope, product = slope + block.share * np.asarray(here[0]), product + block.share * np.asarray(here[1])
        u, size = product, float(np.linalg.norm(product))
        if size > limit or float(np.linalg.norm(slope)) > far:
            return True
        if not 0 < size < np.inf:
            break
    return False


def parts(around: Sequence[Block], w: Array, entries: Sequence[Entries]) -> list[NDArray[np.float64]]:
    """What each entry has of the jump: |Δ∂ₕ(d·∇L)| |d·∇h|, and |Δ∂ₕL| |d·∇h| ‖d‖/‖w‖ where the gradient jumps."""
    result = [np.zeros(len(e.at)) for e in entries]
    for block in around:
        for k, part in enumerate(_parts(block.problem, w, shifts(block, w, entries))):
            result[k][block.rows[k]] = block.share * np.asarray(part, dtype=float)[block.places[k]]
    return result


@jax.jit
def _taken(data: tuple[Any, Array], index: Array) -> tuple[Any, Array]:
    taken: tuple[Any, Array] = jax.tree.map(lambda a: a[index], data)
    return taken


def _side(problem: Problem, w: Array, shifts: list[Array]) -> Array:
    return problem.criterion(shifted(problem.predict, shifts, problem.unravel(w), problem.x), problem.y)


def _across(side: Callable[[Array], Any]) -> Any:
    """side(1) − side(−1), the one after the other: compiled once, and held one at a time."""
    return jax.tree.map(lambda a: a[0] - a[1], jax.lax.map(side, jnp.array([1.0, -1.0])))


def _towards(sign: Array, shifts: list[Array]) -> list[Array]:
    return [sign.astype(s.dtype) * s for s in shifts]


@eqx.filter_jit
def _jump(problem: Problem, w: Array, shifts: list[Array], u: Array) -> tuple[Array, Array]:
    """g₊ − g₋ and (H₊ − H₋)u."""

    def side(sign: Array) -> tuple[Array, Array]:
        moved: tuple[Array, Array] = jax.jvp(
            lambda v: jax.grad(_side, 1)(problem, v, _towards(sign, shifts)), (w,), (u,)
        )
        return moved

    jump: tuple[Array, Array] = _across(side)
    return jump


@eqx.filter_jit
def _moves(problem: Problem, w: Array) -> list[Array]:
    def heights(v: Array) -> list[Array]:
        return [site.height for site in sites(problem.predict, problem.unravel(v), problem.x)]

    tangents: list[Array] = jax.jvp(heights, (w,), (direction(w),))[1]
    return tangents


@eqx.filter_jit
def _parts(problem: Problem, w: Array, shifts: list[Array]) -> list[Array]:
    d = direction(w)

    def side(sign: Array) -> Any:
        return jax.jvp(lambda v: jax.grad(_side, 2)(problem, v, _towards(sign, shifts)), (w,), (d,))

    jumps, bends = _across(side)
    length = jnp.linalg.norm(w)
    ratio = jnp.linalg.norm(d) / jnp.where(length > 0, length, 1.0)
    terms = zip(jumps, bends, _moves(problem, w), strict=True)
    return [jnp.abs(move) * (jnp.abs(bend) + ratio * jnp.abs(jump)) for jump, bend, move in terms]
