"""Data in pieces, and the treatment of batch statistics: over the full batch, frozen, or chunk by chunk."""

import abc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check
from steppe._same import shaped, traced
from steppe.curvature._equations import evaluate, flat, walk
from steppe.networks._layers import Freezable
from steppe.networks._normalised import OwnStatistics
from steppe.problem import Predict, Problem

# Pieces of bounded memory.

# (first example, number of examples): the first can be traced, the number is static.
Start = int | Array
OnSpan = Callable[[Start, int], Array]


@dataclass(frozen=True)
class Pieces:
    """n examples in consecutive pieces of `size`; the last piece has the rest.

    The equal pieces run in one compiled loop, one at a time; the rest comes after them.

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
        """f, which has one row an example, concatenated over the pieces."""
        if self.whole:
            return f(0, self.n)
        starts = self.size * jnp.arange(self.n // self.size)
        blocks = jax.lax.map(lambda start: f(start, self.size), starts)
        result = blocks.reshape(-1, *blocks.shape[2:])
        rest = self.n % self.size
        return jnp.concatenate([result, f(self.n - rest, rest)]) if rest else result

    def mean(self, problem: Problem, f: Callable[[Problem], Array]) -> Array:
        """Σ (share of the examples) × f(piece): if f is a mean over examples, the mean over all of them."""
        if self.whole:
            return f(problem)
        return self.total(lambda start, size: size / self.n * f(part(problem, start, size)))


def part(problem: Problem, start: Start, size: int) -> Problem:
    """The same problem on `size` examples, from `start` on."""
    if isinstance(start, int) and (start, size) == (0, len(problem)):
        return problem

    def cut(a: Array) -> Array:
        return jax.lax.dynamic_slice_in_dim(a, start, size)

    return eqx.tree_at(lambda p: (p.x, p.y), problem, (jax.tree.map(cut, problem.x), cut(problem.y)))


# Whether a network treats each example alone, as it does without batch statistics.

# Examples compared: enough to have statistics, few enough to cost nothing.
_COMPARED = 64


def treats_examples_alone(problem: Problem, w: Array) -> bool:
    """Whether the predictions of an example are the same without the other examples, to half of the digits.

    They are compared at w and at a random point at the distance ‖w‖, since a layer of zeros at w can hide a difference.

    >>> import steppe
    >>> x, y = jnp.array([[1.0], [2.0]]), jnp.zeros((2, 1))
    >>> centred = Problem(lambda w, x: w * (x - x.mean()), jnp.array([[1.0]]), x, y, steppe.losses.mse)
    >>> treats_examples_alone(centred, centred.w0)
    False
    """
    some = min(_COMPARED, len(problem))
    if not takes(problem, w, some) or not takes(problem, w, 1):
        return False
    few = part(problem, 0, some)
    return all(bool(_compared(few, u)) for u in (w, _elsewhere(w)))


def takes(problem: Problem, w: Array, size: int) -> bool:
    """Whether predict returns one row an example for the first `size` examples too.

    A network that was written for these data may not: it can contain some of them, or their number.

    >>> import steppe
    >>> p = Problem(lambda w, x: w * jnp.ones(2), jnp.array(1.0), jnp.zeros(2), jnp.zeros(2), steppe.losses.mse)
    >>> takes(p, p.w0, 2), takes(p, p.w0, 1)
    (True, False)
    """
    leaves, structure = jax.tree.flatten((problem, w))
    return _takes(structure, tuple((a.shape, a.dtype) for a in leaves), size)


@lru_cache(maxsize=256)  # a network is checked once, not at every measurement
def _takes(structure: Any, shapes: tuple[tuple[tuple[int, ...], Any], ...], size: int) -> bool:
    problem, w = jax.tree.unflatten(structure, [shaped(*s) for s in shapes])
    try:
        found = eqx.filter_eval_shape(lambda problem, w: part(problem, 0, size).predictions(w), problem, w)
    except (TypeError, ValueError):
        return False
    return bool(found.shape[0] == size)


@jax.jit
def _elsewhere(w: Array) -> Array:
    length = jnp.sqrt(jnp.mean(w**2))
    return w + jnp.where(length > 0, length, 1) * jax.random.normal(jax.random.key(0), w.shape, w.dtype)


@eqx.filter_jit
def _compared(problem: Problem, w: Array) -> Array:
    together = problem.predictions(w)
    ends = jnp.array([0, len(problem) - 1])
    alone = jax.vmap(lambda i: part(problem, i, 1).predictions(w)[0])(ends)
    scale = jnp.max(jnp.abs(together)) * float(np.finfo(together.dtype).eps) ** 0.5
    return jnp.all(jnp.abs(alone - together[ends]) <= scale)


# A network with its batch statistics held fixed.


@dataclass(frozen=True)
class FrozenPredict:
    """predict with every batch statistic held constant: same predictions, no derivative through the statistics.

    A statistic is the result of an equation whose inputs have an axis of examples and whose result has none: a mean, a
    sum, a maximum over the examples. It is found by comparing the shapes for n and for more examples: the axes that
    change are axes of examples.
    """

    predict: Predict

    def __call__(self, params: Any, x: Any) -> Array:
        closed = traced(self.predict, params, x)
        frozen = set(statistics(self.predict, params, x))
        place = iter(range(len(list(flat(closed)))))

        def step(equation: Any, inputs: list[Any]) -> Any:
            outputs = evaluate(equation, inputs)
            return [jax.lax.stop_gradient(a) for a in outputs] if next(place) in frozen else outputs

        (prediction,) = walk(closed, jax.tree.leaves((params, x)), step)
        return prediction


def statistics(predict: Predict, params: Any, x: Any) -> Iterator[int]:
    """The positions, in the order of `flat`, of the equations that reduce over examples."""
    params = jax.eval_shape(lambda: params)
    n = jax.tree.leaves(x)[0].shape[0]

    def equations(n: int) -> list[Any]:
        rows = jax.tree.map(lambda a: shaped((n, *a.shape[1:]), a.dtype), x)
        return list(flat(traced(predict, params, rows)))

    now = equations(n)
    # A network that works through its examples in batches can have other equations for one example more.
    for larger in (n + 1, 2 * n):
        then = equations(larger)
        if [e.primitive for e in then] == [e.primitive for e in now]:
            break
    else:
        raise ValueError(f"other equations for {n + 1} and {2 * n} examples than for {n}")
    for place, (a, b) in enumerate(zip(now, then, strict=True)):
        entering = any(s.aval.shape != t.aval.shape for s, t in zip(a.invars, b.invars, strict=True))
        leaving = any(s.aval.shape != t.aval.shape for s, t in zip(a.outvars, b.outvars, strict=True))
        if entering and not leaving:
            yield place


# Three treatments of batch statistics; the result of a measure says which one was used.


class Statistics(abc.ABC):
    """A treatment of batch statistics, such as those of batch normalisation. Without statistics all three agree."""

    @abc.abstractmethod
    def problem(self, problem: Problem, w: Array) -> Problem:
        """The problem with its statistics treated in this way."""

    @abc.abstractmethod
    def pieces(self, problem: Problem, w: Array, size: int) -> Pieces:
        """The pieces into which its data can be cut; the memory holds `size` examples at a time."""


@dataclass(frozen=True)
class FullBatch(Statistics):
    """Statistics of all examples, with their derivatives: ∇²L of the loss that full-batch gradient descent sees."""

    def __str__(self) -> str:
        return "full batch"

    def problem(self, problem: Problem, w: Array) -> Problem:
        return problem

    def pieces(self, problem: Problem, w: Array, size: int) -> Pieces:
        # A network whose examples see each other needs all of them at once, for any memory.
        return Pieces(len(problem), size if size < len(problem) and treats_examples_alone(problem, w) else len(problem))


FULL_BATCH = FullBatch()


@dataclass(frozen=True)
class PerChunk(Statistics):
    """Statistics of each consecutive chunk of `size` examples, as mini-batch training sees them."""

    size: int

    def __post_init__(self) -> None:
        check.integer("size", self.size, minimum=1, remedy="Pass the number of examples of a mini-batch.")

    def __str__(self) -> str:
        return f"chunks of {self.size}"

    def problem(self, problem: Problem, w: Array) -> Problem:
        net = problem.predict
        for size in {size for _, size in self.pieces(problem, w, self.size).spans}:
            if not takes(problem, w, size):
                remedy = "It was written for all of these data; take FullBatch()."
                check.refuse(
                    "predict", "a function of any number of examples", f"no row each for {size} of them", remedy
                )
        return _with(problem, _ChunkStatistics(net)) if isinstance(net, OwnStatistics) else problem

    def pieces(self, problem: Problem, w: Array, size: int) -> Pieces:
        return Pieces(len(problem), min(self.size, len(problem)))


@dataclass(frozen=True)
class Frozen(Statistics):
    """Statistics of all examples at w, held constant: the curvature of the network in use after training."""

    def __str__(self) -> str:
        return "frozen"

    def problem(self, problem: Problem, w: Array) -> Problem:
        if isinstance(problem.predict, Freezable):
            return _with(problem, problem.predict.frozen())
        try:
            found = list(statistics(problem.predict, problem.unravel(w), problem.x))
        except (TypeError, ValueError) as error:
            remedy = "Frozen() compares the equations for n and for more examples; take FullBatch() or PerChunk(size)."
            check.refuse("predict", "a function of any number of examples", str(error), remedy)
        if not found and treats_examples_alone(problem, w):
            return problem
        frozen = _with(problem, FrozenPredict(problem.predict))
        if not found or not bool(_decoupled(frozen, w)):
            check.refuse(
                "statistics",
                "FullBatch() or PerChunk(size) for this network",
                "Frozen()",
                "Its examples see each other in other ways than through sums over all of them.",
            )
        return frozen

    def pieces(self, problem: Problem, w: Array, size: int) -> Pieces:
        # The statistics belong to all examples: a piece would compute its own.
        frozen = isinstance(problem.predict, FrozenPredict)
        return Pieces(len(problem), len(problem)) if frozen else FULL_BATCH.pieces(problem, w, size)


@dataclass(frozen=True)
class _ChunkStatistics:
    """A network that carries its training inputs, with the statistics of the inputs it is called with."""

    network: OwnStatistics

    def __call__(self, params: Any, x: Array) -> Array:
        return self.network.forward(params, x, (params, x))


def _with(problem: Problem, predict: Predict) -> Problem:
    # The arrays are checked already; to build them again would compile a program for each.
    static = (predict, problem.loss_function, problem.unravel)
    return Problem.tree_unflatten(static, (problem.w0, problem.x, problem.y))


@eqx.filter_jit
def _decoupled(problem: Problem, w: Array) -> Array:
    """Whether the first prediction depends on no real input of another example."""

    def real(a: Array) -> bool:
        return jnp.issubdtype(a.dtype, jnp.floating)

    moving, still = eqx.partition(problem.x, real)

    def first(rows: Array) -> Array:
        return problem.predict(problem.unravel(w), eqx.combine(rows, still))[0]

    output, back = jax.vjp(first, moving)
    # Weights that no symmetry can cancel.
    (slopes,) = back(jnp.sin(1.0 + jnp.arange(output.size, dtype=output.dtype)).reshape(output.shape))
    return jnp.all(jnp.array([jnp.all(a[1:] == 0) for a in jax.tree.leaves(slopes)]))
