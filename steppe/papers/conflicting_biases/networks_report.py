"""A finished sweep in numbers, for the command line."""

from typing import Any

from steppe.papers.conflicting_biases.networks_ends import last
from steppe.rates import summary


def row_summary(entry: Any) -> dict[str, Any]:
    """What it is, its critical rate, and what its ends at the last goal come to."""
    ends = last(entry)
    flow = {name: ends.flow[name] for name in ("initial_sharpness", "largest_sharpness")}
    told = {"setting": ends.title.replace("\n", ", ")} | flow | {"critical_rate": ends.critical}
    return told | summary(ends.table, ends.critical) | {"rates": len(ends.rates)}
