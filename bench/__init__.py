"""Benchmarks: ours against peers and the limit of the hardware, both measured in one run on one machine.

Each module without an underscore is a benchmark with a function `measure() -> list[Ratio]`. The package lies beside
steppe: it is called `bench` in a checkout, and `steppe_bench` where a wheel installed it.
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from steppe.check import ArgumentError, suggest


@dataclass(frozen=True)
class Ratio:
    """What ours and theirs cost in `unit`, where less is better, and theirs/ours: above 1 we are better."""

    subject: str
    peer: str
    ours: float
    theirs: float
    unit: str
    ratio: float
    note: str = ""


def names() -> list[str]:
    """The names of all benchmarks."""
    return [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]


def benchmark(name: str) -> Callable[[], list[Ratio]]:
    """The function `measure` of one benchmark."""
    if name not in names():
        raise ArgumentError(f"unknown benchmark {name!r}. " + suggest(name, names()))
    measure: Callable[[], list[Ratio]] = importlib.import_module(f"{__name__}.{name}").measure
    return measure
