"""Ratios against peers and the hardware limit, each measured in one run."""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from steppe.check import ArgumentError, suggest


@dataclass(frozen=True)
class Ratio:
    """ours and theirs in `unit` (lower is better), and theirs/ours: above 1 we are better."""

    subject: str
    peer: str
    ours: float
    theirs: float
    unit: str
    ratio: float
    note: str = ""


def benchmark(name: str) -> Callable[[], list[Ratio]]:
    known = [module.name for module in pkgutil.iter_modules(__path__)]
    if name not in known:
        raise ArgumentError(f"unknown benchmark {name!r}. " + suggest(name, known))
    measure: Callable[[], list[Ratio]] = importlib.import_module(f"steppe.bench.{name}").measure
    return measure
