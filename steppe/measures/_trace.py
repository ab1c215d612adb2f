"""tr ∇²L with its two parts: exact if that is affordable, else estimated."""

import numpy as np
from jax import Array

from steppe import linalg
from steppe._random import Key, generator
from steppe.curvature import AnyProblem, Curvature, Statistics, backend, gauss_newton, hessian, residual
from steppe.curvature._operator import MEMORY
from steppe.curvature._statistics import FULL_BATCH
from steppe.estimate import Accuracy, Estimate
from steppe.linalg._trace import TRACE
from steppe.measures._policy import check_policy, measured


def trace(
    problem: AnyProblem,
    w: Array | None = None,
    *,
    accuracy: Accuracy = TRACE,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> Estimate:
    """tr ∇²L(w), with `parts` gauss_newton and residual.

    ∇²L = (1/n) Σᵢ [J_iᵀ ℓ″ J_i + Σ_c ℓ′_c ∇²f_c(xᵢ)]: the first part needs the gradient of each output. The second part
    vanishes at an interpolator; for networks of ReLU layers its trace vanishes everywhere.

    The trace is exact for networks with a closed form (one forward pass) and for at most `max_matvecs` parameters (one
    product for each parameter, or one backward pass for each output). Otherwise XTrace estimates it to the `accuracy`;
    the first part is still exact if the Jacobian is small enough. At millions of parameters `memory` can end the
    estimate before it is accurate.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: w[0] * w[1] * x, jnp.ones(2), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)
    >>> trace(p, p.w0).value                                        # L = ½(w₁w₂ − 1)² at (1, 1)
    2.0

    Epperly, Tropp and Webber 2024 for XTrace.
    """
    check_policy(problem, accuracy=accuracy, statistics=statistics, memory=memory, key=key)
    exact = backend(problem).exact_traces(residual, problem, w, statistics=statistics, memory=memory)
    if (known := exact.closed_form()) is not None:
        return measured(_sum(*known, matvecs=0), problem, statistics)
    p, cheap = exact.w.size, exact.is_cheap(accuracy.max_matvecs)
    if p <= accuracy.max_matvecs and not exact.splits:
        return measured(Estimate.exact(float(exact.diagonal(hessian)), matvecs=p), problem, statistics)
    if p <= accuracy.max_matvecs:
        first = exact.gauss_newton() if cheap else exact.diagonal(gauss_newton)
        return measured(_sum(first, exact.diagonal(residual), matvecs=p if cheap else 2 * p), problem, statistics)

    rng = generator(key)

    def estimated(curvature: Curvature, shift: np.floating | float = 0.0) -> Estimate:
        operator = curvature(problem, w, statistics=statistics, memory=memory)

        def shifted(v: np.ndarray) -> np.ndarray:
            return operator(v) + shift * np.asarray(v, operator.dtype)

        product = shifted if shift else operator
        return linalg.xtrace(
            product, operator.size, accuracy=accuracy, precision=operator.precision, memory=memory, key=rng
        )

    if not exact.splits:
        return measured(estimated(hessian), problem, statistics)
    if not cheap:
        total = estimated(hessian)
        return measured(_split(total, estimated(gauss_newton)), problem, statistics)
    first = exact.gauss_newton()
    # tr(R + g/p I) = tr ∇²L, so that the accuracy is that of the sum; a multiple of I has no variance.
    return measured(_split(estimated(residual, first / p), Estimate.exact(float(first))), problem, statistics)


def _sum(gauss_newton: np.floating, residual: np.floating, *, matvecs: int) -> Estimate:
    parts = {"gauss_newton": Estimate.exact(float(gauss_newton)), "residual": Estimate.exact(float(residual))}
    return Estimate.exact(float(gauss_newton + residual), matvecs=matvecs, parts=parts)


def _split(total: Estimate, known: Estimate) -> Estimate:
    """The total with its parts: the residual part is the difference, certain where both estimates hold."""
    difference = Estimate(
        total.value - known.value,
        total.lower - known.upper,
        total.upper - known.lower,
        total.confidence + known.confidence - 1.0,
        converged=total.converged and known.converged,
    )
    return Estimate(
        total.value,
        total.lower,
        total.upper,
        total.confidence,
        total.matvecs + known.matvecs,
        {"gauss_newton": known, "residual": difference},
        total.converged,
    )
