"""The common parts of all measures: checks of their arguments, and what an `Estimate` of them says besides."""

import math
from dataclasses import dataclass, fields, replace
from typing import Any, final

from steppe import check
from steppe._random import Key, generator
from steppe.curvature import AnyProblem, Curvature, Statistics, backend, hessian
from steppe.estimate import Accuracy, Estimate


def check_policy(
    problem: AnyProblem,
    *,
    accuracy: Accuracy | None = None,
    curvature: Curvature = hessian,
    statistics: Statistics,
    memory: float,
    key: Key,
) -> None:
    """Refuses wrong options of a measure of curvature before anything is computed, even those that it will not need."""
    backend(problem)
    if accuracy is not None:
        Accuracy.expected(accuracy)
    check_matrix(curvature, statistics, memory)
    generator(key)


def check_matrix(curvature: Any, statistics: Any, memory: float) -> None:
    if not isinstance(curvature, Curvature):
        remedy = "Pass hessian, gauss_newton or another one of steppe.curvature."
        check.refuse("curvature", "a curvature matrix", curvature, remedy)
    if not isinstance(statistics, Statistics):
        remedy = "Pass FullBatch(), Frozen() or PerChunk(size) of steppe.curvature."
        check.refuse("statistics", "a treatment of batch statistics", statistics, remedy)
    check.number("memory", memory, above=0.0, remedy="Pass a number of bytes, for instance 2**30.")


# Lanczos vectors, unless they do not fit into the memory.
_BASIS, _LEAST_BASIS = 32, 8


def basis(p: int, memory: float) -> int:
    """How many float64 vectors of length p Lanczos may hold within `memory` bytes, from 8 to 32.

    >>> basis(1_000_000, 2**30), basis(10_000_000, 2**30), basis(100_000_000, 2**30)
    (32, 13, 8)
    """
    return max(_LEAST_BASIS, min(_BASIS, int(memory / (8 * p))))


@final
@dataclass(frozen=True)
class Measured(Estimate):
    """An `Estimate` of a curvature; `statistics` is "full batch", "frozen" or "chunks of k", for a torch problem also
    "batches of k"."""

    statistics: str = "full batch"


def measured(estimate: Estimate, problem: AnyProblem, statistics: Statistics) -> Measured:
    treatment = backend(problem).treatment(problem, statistics)
    return Measured(**{f.name: getattr(estimate, f.name) for f in fields(Estimate)}, statistics=treatment)


def read_off(value: float, *, matvecs: int = 0) -> Estimate:
    """An exact number. NaN, from parameters of a diverged run, has not converged.

    >>> read_off(2.0).is_exact, read_off(math.nan).is_exact, read_off(math.nan).converged
    (True, False, False)
    """
    return replace(Estimate.exact(value, matvecs=matvecs), converged=not math.isnan(value))
