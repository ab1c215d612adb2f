"""What a gradient flow came to at one loss, and the grids of rates around its critical one."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check
from steppe.dynamics.run import Outcome

FINE_POINTS, COARSE_POINTS = 12, 9

# Where the coarse distance is smaller than the fine one by more than this, it is no coarse grid.
FINEST = 4


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
        """η_c = 2/s_GF: above it gradient descent leaves the flow before it reaches ε. ∞ where s_GF ≤ 0."""
        return float("inf") if self.largest_sharpness <= 0 else 2 / self.largest_sharpness

    def fine_grid(self) -> NDArray[Any]:
        """1/(2 s_GF), 2/(2 s_GF), ..., 6/s_GF (appendix G)."""
        self._refuse_flat()
        return np.arange(1, FINE_POINTS + 1) / (2 * self.largest_sharpness)

    def coarse_grid(self, *, beyond: int = 0, refine: int = 1) -> NDArray[Any]:
        """Nine rates from 6/s_GF to 2/s₀, those below them > 0 at the same distance, and `beyond` many above.

        `refine` divides the distance, for where gradient descent diverges within. Where 2/s₀ is below 6/s_GF, or hardly
        above it, so that there would be more than 48 rates below them, the distance is that of the fine grid.
        """
        check.integer("beyond", beyond, minimum=0)
        check.integer("refine", refine, minimum=1)
        self._refuse_flat()
        low = 6 / self.largest_sharpness
        high = 2 / self.initial_sharpness if self.initial_sharpness > 0 else 0.0
        points = (COARSE_POINTS - 1) * refine
        fine, step = 1 / (2 * self.largest_sharpness), (high - low) / (COARSE_POINTS - 1)
        if step < fine / FINEST:
            step = fine
        step = step / refine
        below = int(np.ceil(low / step)) - 1
        grid = low + step * np.arange(-below, points + beyond + 1)
        return grid[grid > 1e-9 * step]  # a first rate that is 0 but for rounding

    def _refuse_flat(self) -> None:
        """No rate is critical where the flow meets no positive curvature, and none can be told where it has no loss."""
        if not 0 < self.largest_sharpness < np.inf:
            remedy = "Start where there is curvature, follow the flow to a lower loss, or choose the rates yourself."
            check.refuse("s_GF", "a finite number > 0 for a grid of rates", self.largest_sharpness, remedy)
