"""Data in pieces of bounded memory, the last one ragged, each weighted by its share of the examples."""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from steppe.problems import Problem

# (first example, number of examples): the first may be traced, the number is static.
Start = int | Array
OnSpan = Callable[[Start, int], Array]


@dataclass(frozen=True)
class Pieces:
    """n examples in consecutive pieces of `size`; the last one has what is left.

    Equal pieces run in one compiled loop, one at a time; the ragged one comes after them.

    >>> pieces = Pieces(10, 4)
    >>> pieces.spans
    [(0, 4), (4, 4), (8, 2)]
    >>> int(pieces.total(lambda start, size: size * jnp.ones((), int)))
    10
    """

    n: int
    size: int

    @property
    def whole(self) -> bool:
        return self.size >= self.n

    @property
    def spans(self) -> list[tuple[int, int]]:
        return [(start, min(self.size, self.n - start)) for start in range(0, self.n, self.size)]

    def total(self, f: OnSpan) -> Array:
        """Σ f over the pieces."""
        if self.whole:
            return f(0, self.n)
        shape = jax.eval_shape(lambda: f(0, self.size))
        starts = self.size * jnp.arange(self.n // self.size)
        zero = jnp.zeros(shape.shape, shape.dtype)
        result, _ = jax.lax.scan(lambda sum_, start: (sum_ + f(start, self.size), None), zero, starts)
        rest = self.n % self.size
        return result + f(self.n - rest, rest) if rest else result

    def stacked(self, f: OnSpan) -> Array:
        """f, one row an example, joined over the pieces."""
        if self.whole:
            return f(0, self.n)
        starts = self.size * jnp.arange(self.n // self.size)
        blocks = jax.lax.map(lambda start: f(start, self.size), starts)
        result = blocks.reshape(-1, *blocks.shape[2:])
        rest = self.n % self.size
        return jnp.concatenate([result, f(self.n - rest, rest)]) if rest else result

    def mean(self, problem: Problem, f: Callable[[Problem], Array]) -> Array:
        """Σ (share of the examples) × f(piece): for f a mean over examples, its mean over all."""
        if self.whole:
            return f(problem)
        return self.total(lambda start, size: size / self.n * f(part(problem, start, size)))


def part(problem: Problem, start: Start, size: int) -> Problem:
    """The same problem on `size` examples from `start` on."""
    if isinstance(start, int) and (start, size) == (0, len(problem)):
        return problem

    def cut(a: Array) -> Array:
        return jax.lax.dynamic_slice_in_dim(a, start, size)

    return eqx.tree_at(lambda p: (p.x, p.y), problem, (jax.tree.map(cut, problem.x), cut(problem.y)))
