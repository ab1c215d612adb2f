"""What batch statistics mean when curvature is measured; three answers, and the result says which was taken."""

import abc
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from steppe import check
from steppe.measures.operators.coupling import takes, treats_examples_alone
from steppe.measures.operators.frozen import FrozenPredict, statistics
from steppe.measures.operators.pieces import Pieces
from steppe.problems import Problem
from steppe.problems.networks.training_inputs import OwnStatistics
from steppe.problems.problem import Predict


class Statistics(abc.ABC):
    """How batch statistics, such as those of batch normalisation, are treated. Without them all three agree."""

    @abc.abstractmethod
    def problem(self, problem: Problem, w: Array) -> Problem:
        """The problem whose curvature is meant."""

    @abc.abstractmethod
    def pieces(self, problem: Problem, w: Array, size: int) -> Pieces:
        """How its data may be cut; `size` examples are what the memory holds at a time."""


@dataclass(frozen=True)
class FullBatch(Statistics):
    """Statistics of all examples, differentiated through: ∇²L of the loss that full-batch gradient descent sees."""

    def __str__(self) -> str:
        return "full batch"

    def problem(self, problem: Problem, w: Array) -> Problem:
        return problem

    def pieces(self, problem: Problem, w: Array, size: int) -> Pieces:
        # A network whose examples see each other needs all of them at once, whatever the memory.
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
        return _with(problem, _OfItsOwn(net)) if isinstance(net, OwnStatistics) else problem

    def pieces(self, problem: Problem, w: Array, size: int) -> Pieces:
        return Pieces(len(problem), min(self.size, len(problem)))


@dataclass(frozen=True)
class Frozen(Statistics):
    """Statistics of all examples at w, held constant: the curvature of the network as it is used after training."""

    def __str__(self) -> str:
        return "frozen"

    def problem(self, problem: Problem, w: Array) -> Problem:
        if isinstance(problem.predict, OwnStatistics):
            return _with(problem, _Held(problem.predict))
        try:
            found = list(statistics(problem.predict, problem.unravel(w), problem.x))
        except (TypeError, ValueError) as error:
            remedy = "Frozen() compares the shapes for n and for n + 1 examples; take FullBatch() or PerChunk(size)."
            check.refuse("predict", "a function of any number of examples", str(error), remedy)
        if not found and treats_examples_alone(problem, w):
            return problem
        frozen = _with(problem, FrozenPredict(problem.predict))
        if not found or not bool(_decoupled(frozen, w)):
            check.refuse(
                "statistics",
                "FullBatch() or PerChunk(size) for this network",
                "Frozen()",
                "Its examples see each other in another way than by sums over all of them.",
            )
        return frozen

    def pieces(self, problem: Problem, w: Array, size: int) -> Pieces:
        # Their values belong to all examples: a piece would compute its own.
        frozen = isinstance(problem.predict, FrozenPredict)
        return Pieces(len(problem), len(problem)) if frozen else FULL_BATCH.pieces(problem, w, size)


@dataclass(frozen=True)
class _OfItsOwn:
    """A network that carries its training inputs, with the statistics of what it is given."""

    network: OwnStatistics

    def __call__(self, params: Any, x: Array) -> Array:
        return self.network.forward(params, x, (params, x))


@dataclass(frozen=True)
class _Held:
    """The same with those of its training inputs, held constant."""

    network: OwnStatistics

    def __call__(self, params: Any, x: Array) -> Array:
        inputs = jnp.asarray(self.network.train.array, x.dtype)
        return self.network.forward(params, x, (jax.lax.stop_gradient(params), inputs))


def _with(problem: Problem, predict: Predict) -> Problem:
    # Its arrays are known to be right; to make them anew would compile a program for each.
    static = (predict, problem.criterion, problem.unravel)
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
    # By amounts that no symmetry can cancel.
    (slopes,) = back(jnp.sin(1.0 + jnp.arange(output.size, dtype=output.dtype)).reshape(output.shape))
    return jnp.all(jnp.array([jnp.all(a[1:] == 0) for a in jax.tree.leaves(slopes)]))
