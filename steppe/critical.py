"""The critical learning rate η_c = 2/s_GF of conflicting-biases (section 2), and the grids of rates around it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check, until, when
from steppe.dynamics import Flow, run
from steppe.dynamics.run import Outcome
from steppe.measures import Tracker
from steppe.problems import Problem

FINE_POINTS, COARSE_POINTS = 12, 9


@dataclass(frozen=True)
class Critical:
    """The flow from the start to one loss ε: `w` there, its sharpness, and s_GF, the largest on the way.

    `outcome` is `reached`; where the flow could not come so far, `stalled`, `exhausted` or `diverged`, and s_GF is the
    largest sharpness as far as it came. `gradients` are those of the flow from the start, without the sharpness.
    """

    loss: float
    outcome: Outcome
    w: Array
    time: float
    sharpness: float
    initial_sharpness: float
    largest_sharpness: float
    gradients: int

    @property
    def rate(self) -> float:
        """η_c = 2/s_GF: above it gradient descent leaves the flow before it reaches ε."""
        return 2 / self.largest_sharpness

    def fine_grid(self) -> NDArray[Any]:
        """1/(2 s_GF), 2/(2 s_GF), ..., 6/s_GF (appendix G)."""
        return np.arange(1, FINE_POINTS + 1) / (2 * self.largest_sharpness)

    def coarse_grid(self, *, beyond: int = 0, refine: int = 1) -> NDArray[Any]:
        """Nine rates from 6/s_GF to 2/s₀, those below them > 0 at the same distance, and `beyond` many above.

        `refine` divides the distance, for where gradient descent diverges within. Where 2/s₀ is no larger than 6/s_GF
        the distance is that of the fine grid.
        """
        check.integer("beyond", beyond, minimum=0)
        check.integer("refine", refine, minimum=1)
        low, high = 6 / self.largest_sharpness, 2 / self.initial_sharpness
        points = (COARSE_POINTS - 1) * refine
        wide = self.initial_sharpness > 0 and high > low
        step = (high - low) / points if wide else 1 / (2 * self.largest_sharpness * refine)
        below = int(np.ceil(low / step)) - 1
        grid = low + step * np.arange(-below, points + beyond + 1)
        return grid[grid > 1e-9 * step]  # a first rate that is 0 but for rounding


def critical_rate(
    problem: Problem,
    w: Any = None,
    *,
    losses: Sequence[float] = (1e-1, 1e-2, 1e-3),
    flow: Flow | None = None,
    stop: until.Stop | None = None,
    key: int = 0,
) -> tuple[Critical, ...]:
    """s₀, s_GF and η_c for each of the losses, the largest first, from one gradient flow that starts at w.

    The sharpness is measured at every step of the flow (default rtol 1e-3) and where a loss is reached. `stop` ends the
    flow to each next loss earlier, after until.seconds(60) for example.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: w[0] * w[1] * x, jnp.array([0.5, 0.5]), jnp.ones(1), jnp.ones(1),
    ...     steppe.losses.half_mse)
    >>> (c,) = critical_rate(p, losses=[1e-8])                       # ends near w₁ = w₂ = 1 with sharpness w₁² + w₂²
    >>> round(c.largest_sharpness, 2), round(c.rate, 2)
    (2.0, 1.0)
    """
    if not isinstance(problem, Problem):
        check.refuse("problem", "a steppe.Problem", problem, "Build steppe.Problem(predict, params, x, y, loss).")
    goals = sorted({check.number("losses", goal) for goal in losses}, reverse=True)
    if not goals:
        check.refuse("losses", "at least one loss", losses, "Pass for example losses=[0.01].")
    w = problem.vector(problem.w0 if w is None else w)
    record = {"sharpness": Tracker(key=key)}
    elapsed, largest, gradients, found = 0.0, -np.inf, 0, list[Critical]()
    initial = np.nan
    for goal in goals:
        # Each leg goes on where the one before ended; only the length of its first step is found anew.
        condition = until.loss(goal) if stop is None else until.loss(goal) | stop
        leg = run(problem, flow or Flow(), w, stop=condition, record=record, when=when.every(steps=1), key=key)
        w, gradients = leg.w, gradients + leg.gradients
        if leg.records:
            sharpness = leg.records["sharpness"]
            initial = initial if found else float(sharpness[0])
            largest, last = max(largest, float(sharpness.max())), float(sharpness[-1])
            elapsed += float(leg.records["time"][-1])
        else:
            last = largest = np.nan
        found.append(Critical(goal, leg.outcome, w, elapsed, last, initial, largest, gradients))
        if leg.outcome != "reached":
            break
    return tuple(found)
