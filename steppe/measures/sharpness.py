"""λ_max, the algebraically largest eigenvalue of the Hessian."""

import sys
import warnings

from jax import Array

from steppe import linalg
from steppe.estimate import Estimate
from steppe.measures.kinks import kinks
from steppe.measures.measured import measured
from steppe.measures.operators import FULL_BATCH, MEMORY, Curvature, Statistics, hessian, smaller
from steppe.measures.policy import check_policy
from steppe.measures.randomness import Key, generator
from steppe.problems import Problem


class KinkWarning(UserWarning):
    """The Hessian is not defined where it was measured."""


def sharpness(
    problem: Problem,
    w: Array,
    *,
    rtol: float = 1e-3,
    confidence: float = 0.99,
    max_matvecs: int = 1000,
    curvature: Curvature = hessian,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> Estimate:
    """λ_max(∇²L(w)), with an interval that holds it with probability `confidence`.

    The Ritz value of Lanczos from a random start lies below, the bound that the start's randomness gives above, the
    rounding of the products is added on both sides. The work ends when the interval is rtol wide, relative to the
    value; `converged` is False where `max_matvecs` came first. `curvature` may be another matrix of
    `measures.operators`, whose Gram matrix takes its place where that is smaller.

    Warns where w is at kinks across which the Hessian jumps by more than rtol: see `kinks`.

    >>> import jax.numpy as jnp, steppe
    >>> p = Problem(lambda w, x: w[0] * w[1] * x, jnp.ones(2), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)
    >>> round(sharpness(p, p.w0).value, 6)                          # ∇²L = [[1, 1], [1, 1]]
    2.0

    Kuczyński and Woźniakowski 1992 for the bound; see `steppe.linalg.largest`.
    """
    check_policy(
        problem, rtol=rtol, confidence=confidence, max_matvecs=max_matvecs,
        curvature=curvature, statistics=statistics, memory=memory, key=key,
    )  # fmt: skip
    operator = smaller(curvature, problem, w, statistics=statistics, memory=memory)
    with linalg.one_thread():
        pair = linalg.largest(
            operator,
            operator.size,
            rtol=rtol,
            confidence=confidence,
            max_matvecs=max_matvecs,
            key=generator(key),
        )
    warn_of_kinks(problem, w, rtol=rtol, sharpness=pair.estimate.value if curvature is hessian else None)
    return measured(pair.estimate, statistics)


def warn_of_kinks(problem: Problem, w: Array, *, rtol: float = 1e-3, sharpness: float | None = None) -> None:
    """Says so, at the line that called this package, where the Hessian jumps at w by more than rtol: see `kinks`."""
    found = kinks(problem, w, rtol=rtol, sharpness=sharpness)
    if found.matter:
        warnings.warn(
            f"{found.matter} pre-activations are within rounding of a kink, across which the Hessian jumps: it is not "
            "defined there, and that of one side was measured. See steppe.measures.kinks(problem, w).",
            KinkWarning,
            stacklevel=_callers_level(),
        )


def _callers_level() -> int:
    """The `stacklevel`, for the function that asks, of the nearest caller outside of steppe."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "steppe":
        frame, level = frame.f_back, level + 1
    return level
