"""What measures of curvature take besides (problem, w), refused before anything is computed, whatever path is taken."""

from steppe import check
from steppe.linalg.arguments import probability, tolerance
from steppe.measures.inputs import a_problem
from steppe.measures.operators import Curvature, Statistics, hessian
from steppe.measures.randomness import Key, generator
from steppe.problems import Problem


def check_policy(
    problem: Problem,
    *,
    rtol: float = 0.1,
    confidence: float = 0.99,
    max_matvecs: int = 1,
    curvature: Curvature = hessian,
    statistics: Statistics,
    memory: float,
    key: Key,
) -> None:
    """A measure leaves out what it does not take."""
    a_problem(problem)
    tolerance(rtol)
    probability(confidence)
    check.integer("max_matvecs", max_matvecs, minimum=1)
    check_matrix(curvature, statistics, memory)
    generator(key)


def check_matrix(curvature: Curvature, statistics: Statistics, memory: float) -> None:
    if not isinstance(curvature, Curvature):
        remedy = "Pass hessian, gauss_newton or another one of steppe.measures.operators."
        check.refuse("curvature", "a curvature matrix", curvature, remedy)
    if not isinstance(statistics, Statistics):
        remedy = "Pass FullBatch(), Frozen() or PerChunk(size) of steppe.measures."
        check.refuse("statistics", "a treatment of batch statistics", statistics, remedy)
    check.number("memory", memory, above=0.0, remedy="Pass a number of bytes, for instance 2**30.")
