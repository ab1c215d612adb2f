"""A finished sweep in words and numbers, for the command line."""

from typing import Any

from steppe.papers.conflicting_biases.networks_checks import fitted
from steppe.papers.conflicting_biases.networks_ends import last
from steppe.rates import u_shape


def summary(entry: Any) -> dict[str, Any]:
    """The critical rate, where the transition is with its interval, and the U-shape verdict."""
    ends = last(entry)
    flow, table = ends.flow, ends.table
    found: dict[str, Any] = {
        "setting": ends.title.replace("\n", ", "),
        "initial_sharpness": flow["initial_sharpness"],
        "largest_sharpness": flow["largest_sharpness"],
        "critical_rate": ends.critical,
        "rates": len(ends.rates),
        "reached": len(table["lr"]),
    }
    if (fit := fitted(ends)) is not None:
        found |= {
            "transition": fit.rate,
            "transition_interval": [fit.lower, fit.upper] if fit.found else None,
            "transition_over_critical": fit.rate / ends.critical,
            "slope_past_it": fit.slope,
        }
    if len(table["lr"]):
        found |= {
            "u_shape": u_shape(table["test_loss"]).mark,
            "best_rate_over_critical": float(table["lr"][table["test_loss"].argmin()] / ends.critical),
        }
    return found
