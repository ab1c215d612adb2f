"""Finished runs read back: their example, their spec, those of them that settled."""

import math
from typing import Any

from steppe.papers.conflicting_biases.diagonal_setting import Example
from steppe.papers.conflicting_biases.diagonal_sweep import OUTCOMES


def example_of(entry: Any) -> Example:
    return Example(tuple(entry.spec["x"]), entry.spec["y"], entry.spec["alpha"])


def spec_of(kind: Any, entry: Any) -> Any:
    """The spec of a finished run as the object it was."""
    fields = {name: value for name, value in entry.spec.items() if name != "kind"}
    return kind(**{name: tuple(v) if isinstance(v, list) else v for name, v in fields.items()})


def settled(entry: Any, *, above: float = 0.0, below: float = math.inf) -> dict[str, Any]:
    """The curves of the runs that reached their loss with a rate between these two (in η₁)."""
    c = entry.curves
    keep = (c["outcome"] == OUTCOMES.index("reached")) & (c["rate"] > above) & (c["rate"] < below)
    return {name: column[keep] for name, column in c.items()}
