"""What a sweep came to at one goal, in numbers and in words."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steppe.rates.transition import corner
from steppe.rates.ushape import u_shape

# Past its time at the edge sharpness falls again with cross-entropy: there the maximum is the one to look at.
_KINDS = {"sharpness": "sharpness at the end", "smoothed_sharpness": "its smoothed maximum"}


def summary(ends: Mapping[str, NDArray[Any]], critical: float) -> dict[str, Any]:
    """Of the `ends` at one goal (`Sweep.at`): how many rates reached it; where sharpness leaves its plateau, up to
    3 η_c, in units of η_c; and where there is test data, the verdict on the U-shape and the best rate.

    >>> eta = np.array([0.25, 0.5, 1.0, 1.5, 2.0, 3.0])
    >>> table = {"lr": eta, "outcome": np.zeros(6), "sharpness": np.minimum(2.0, 2.0 / eta)}
    >>> told = summary(table | {"smoothed_sharpness": np.full(6, 2.0)}, 1.0)
    >>> told["reached"], round(told["sharpness"]["leaves_over_critical"], 2), told["smoothed_sharpness"]["interval"]
    (6, 1.0, None)
    """
    reached = ends["outcome"] == 0
    found: dict[str, Any] = {"rates": len(reached), "reached": int(reached.sum())}
    for name in _KINDS:
        if (fit := corner(ends, critical, name)) is not None:
            interval = [fit.lower / critical, fit.upper / critical] if fit.found else None
            found[name] = {"leaves_over_critical": fit.rate / critical, "interval": interval, "slope": fit.slope}
    known = reached & np.isfinite(ends.get("test_loss", np.full(len(reached), np.nan)))
    if known.any():
        lr, losses = ends["lr"][known], ends["test_loss"][known]
        found |= {"u_shape": u_shape(losses).mark, "best_over_critical": float(lr[np.argmin(losses)] / critical)}
    return found


def told(found: Mapping[str, Any]) -> list[str]:
    """A summary in lines."""
    lines = [f"reached: {found['reached']} of {found['rates']} rates"]
    for name, what in _KINDS.items():
        if (fit := found.get(name)) is not None:
            lines.append(f"{what} leaves its plateau {_where(**fit)}")
    if "u_shape" in found:
        lines.append(f"test loss: U-shape {found['u_shape']}, least at {found['best_over_critical']:.3g} η_c")
    return lines


def _where(leaves_over_critical: float, interval: list[float] | None, slope: float) -> str:
    if interval is None:
        return "nowhere"
    return f"at {leaves_over_critical:.3g} η_c [{interval[0]:.3g}, {interval[1]:.3g}], slope {slope:.2f}"
