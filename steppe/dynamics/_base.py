"""A dynamics is one pure step; the loop is written once, in run.py."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe import check
from steppe.kernels.training import Recipe
from steppe.problem import Problem


class Dynamics(eqx.Module):
    """How w moves: `step` maps a state to the next one. The state is w itself where nothing else is remembered."""

    batch_size: eqx.AbstractVar[int | None]
    gradients_per_step: ClassVar[int]

    def start(self, problem: Problem, w: Array) -> Any:
        return w

    def position(self, state: Any) -> Array:
        return state

    def gradients(self, state: Any, steps: int) -> int:
        """How many gradients were evaluated in the `steps` steps that led to this state."""
        return steps * self.gradients_per_step

    def recipe(self) -> Recipe | None:
        """This dynamics as the numbers that every kernel understands; None for one that no kernel knows."""
        return None

    @abc.abstractmethod
    def step(self, problem: Problem, state: Any, index: Array | None, *, key: Array) -> tuple[Any, Array]:
        """The next state, and the loss of this batch before the step. `index` names its examples, None means all."""


def batch_loss(problem: Problem, w: Array, index: Array | None) -> Array:
    return problem.loss(w) if index is None else problem.batch_loss(w, index)


def rate(name: str, value: ArrayLike) -> Array:
    """A rate as an array: an array is not a compile-time constant, so a sweep over it compiles once."""
    if isinstance(value, jax.core.Tracer):
        return value
    array = np.asarray(np.nan if value is None or isinstance(value, bool | str) else value, dtype=float)
    if not (np.isfinite(array) & (array >= 0)).all():
        check.refuse(name, "a finite number ≥ 0", value, f"Pass for example {name}=0.01.")
    return jnp.asarray(array)


def batch(value: int | None) -> int | None:
    remedy = "Pass a whole number of examples, or None for all of them."
    return None if value is None else check.integer("batch_size", value, minimum=1, remedy=remedy)
