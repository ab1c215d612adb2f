"""Ticks on a logarithmic axis that spans less than two decades: 1, 2, 5 times powers of ten, as plain numbers,
and some between where that leaves too few."""

from typing import Any

import numpy as np


def plain_ticks(axis: Any) -> None:
    """On both axes of a drawn panel, where they are logarithmic."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    for side, limits in ((axis.xaxis, axis.get_xlim()), (axis.yaxis, axis.get_ylim())):
        low, high = sorted(limits)
        if side.get_scale() != "log" or high / low > 100:
            continue
        powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
        steps = (1, 2, 5) if high / low > 6 else (1, 1.5, 2, 3, 4, 5, 7)
        side.set_major_locator(FixedLocator([p * s for p in powers for s in steps if low <= p * s <= high]))
        side.set_minor_locator(NullLocator())
        side.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
