"""What one run of a sweep leaves behind."""

from dataclasses import dataclass, field
from typing import Any

from jax import Array
from numpy.typing import NDArray

from steppe.dynamics.run import Outcome


@dataclass(frozen=True)
class Reached:
    """Where the loss first was at or below a goal: w there, and the mean of the iterates from there on."""

    goal: float
    step: int
    w: Array
    centre: Array


@dataclass(frozen=True)
class Descent:
    """Gradient descent at one rate: why it ended, the goals it reached, and what was recorded on the way.

    `records` has the columns step, loss, sharpness, l1, l2, distance_l1 and distance_l2 (to the start); sharpness is
    NaN where only the others were recorded. `gradients` and `products` are what it cost.
    """

    lr: float
    outcome: Outcome
    steps: int
    gradients: int
    products: int
    reached: tuple[Reached, ...]
    records: dict[str, NDArray[Any]] = field(repr=False)
