"""A dynamics is one pure step; the loop is written once, in run.py."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check
from steppe.problems import Problem


class Dynamics(eqx.Module):
    """How w moves: `step` maps a state to the next one. The state is w itself where nothing else is remembered."""

    batch_size: eqx.AbstractVar[int | None]
    gradients_per_step: ClassVar[int]

    def start(self, problem: Problem, w: Array) -> Any:
        return w

    def position(self, state: Any) -> Array:
        return state  # type: ignore[no-any-return]

    @abc.abstractmethod
    def step(self, problem: Problem, state: Any, batch: Array | None, *, key: Array) -> tuple[Any, Array]:
        """The next state, and the loss of this batch before the step. `batch` None means all examples."""


def batch_loss(problem: Problem, w: Array, batch: Array | None) -> Array:
    return problem.loss(w) if batch is None else problem.batch_loss(w, batch)


def rate(name: str) -> Any:
    """Converter of a rate to an array: an array is not a compile-time constant, so a sweep compiles once."""

    def convert(value: Any) -> Array:
        if isinstance(value, jax.core.Tracer):
            return value
        array = np.asarray(value, dtype=float) if not isinstance(value, bool | str | None) else np.array(np.nan)
        if not (np.isfinite(array) & (array >= 0)).all():
            check.refuse(name, "a finite number ≥ 0", value, f"Pass for example {name}=0.01.")
        return jnp.asarray(array)

    return convert


def optional_batch(value: int | None) -> int | None:
    remedy = "Pass a whole number of examples, or None for all of them."
    return None if value is None else check.integer("batch_size", value, minimum=1, remedy=remedy)
