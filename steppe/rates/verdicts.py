"""Which runs are given up before their steps are over, by rules that say why."""

import math
from collections.abc import Sequence

from steppe.dynamics.run import Outcome

# A loss so many times that of the start is lost. Runs that reached their goal were not seen above 1.3 times the loss of
# the start, on digits with squares and cross-entropy; none that passed a thousand times it came back.
LOST = 1e3

# The run is not judged slow before it has gone so many times the flow's way, nor before so many steps.
WAY, FEWEST = 2.0, 200

# At the pace of the last doubling of its steps the goal is so many times the steps allowed away.
HOPELESS = 10.0


def doomed(steps: Sequence[float], losses: Sequence[float], *, goal: float, most: int, way: float) -> Outcome | None:
    """`diverged` or `stalled` where a run cannot be expected to reach its goal; None where it may.

    `steps` and `losses` are what was recorded so far, the last ones now; `most` are the steps allowed; `way` is the
    time η · steps, in units of the flow's time to the goal (0 where that is not known: then no run is slow).

    Diverged: the loss is a thousand times that of the start, or not finite. Stalled: the least loss fell by the factor
    q while the steps doubled; were it to go on so, (loss/goal)^{1/log₂ q} times as many steps would be needed, more
    than ten times those allowed, although twice the flow's time has passed.

    >>> doomed([0, 10], [1.0, 2e3], goal=0.1, most=1000, way=0.0)
    'diverged'
    >>> doomed([0, 300, 600], [1.0, 0.9, 0.8999], goal=0.1, most=1000, way=3.0)
    'stalled'
    >>> doomed([0, 300, 600], [1.0, 0.9, 0.4], goal=0.1, most=1000, way=3.0)
    """
    now, loss = steps[-1], losses[-1]
    if not loss <= LOST * losses[0]:
        return "diverged"
    if way < WAY or now < FEWEST:
        return None
    half = min(loss for step, loss in zip(steps, losses, strict=True) if step <= now / 2)
    least = min(losses)
    fall = math.log2(half / least) if least < half else 0.0
    # now · (least/goal)^{1/fall} > HOPELESS · most, in logarithms and without dividing by 0.
    return "stalled" if math.log(least / goal) > fall * math.log(HOPELESS * most / now) else None
