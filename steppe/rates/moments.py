"""When sharpness is measured on the way: often where it changes, never beyond a share of the cost of the run; and when
loss and norms are."""

import math
from dataclasses import dataclass

# A product with ∇²L costs as much as two gradients.
PRODUCT = 2

# The distance is halved where sharpness changed by more than the first share since it was last looked at, doubled
# where it changed by less than the second.
FAST, SLOW = 0.05, 0.01

# Looks are at most so far apart, relative to the steps done: 20 and more in each tenfold of steps. So are loss and
# norms, which are never too dear.
SPREAD = 0.1


def spread(step: int) -> int:
    """The step of the next look at the latest.

    >>> [spread(step) for step in (0, 9, 10, 25, 1000)]
    [1, 10, 11, 27, 1100]
    """
    return step + max(1, int(SPREAD * step))


@dataclass(frozen=True)
class Moments:
    """The distance in steps to the next look, and the share of the gradients that products may cost.

    >>> Moments(share=0.3, distance=8).changed(0.2), Moments(share=0.3, distance=8).changed(0.0)
    (Moments(share=0.3, distance=4), Moments(share=0.3, distance=16))
    >>> Moments(share=0.5, distance=8).after(100, products=40)       # 40 products are paid for by 160 steps
    160
    """

    share: float
    distance: int = 1

    def changed(self, change: float) -> "Moments":
        """After a look that found this relative change."""
        if change > FAST:
            return Moments(self.share, max(1, self.distance // 2))
        return Moments(self.share, 2 * self.distance) if change < SLOW else self

    def after(self, step: int, *, products: int) -> int:
        """The step of the next look; `products` is what the looks so far have cost."""
        near = min(step + self.distance, spread(step))
        return max(near, math.ceil(PRODUCT * products / self.share))
