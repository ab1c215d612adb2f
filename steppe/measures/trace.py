"""tr ∇²L, with its two parts."""

import numpy as np
from jax import Array

from steppe import check, linalg
from steppe.estimate import Estimate
from steppe.measures.exact_trace import closed_form, diagonal_sum, gauss_newton_trace, walkable
from steppe.measures.measured import measured
from steppe.measures.operators import FULL_BATCH, MEMORY, Statistics, gauss_newton, hessian, residual
from steppe.measures.operators.curvature import Curvature, held, settled
from steppe.measures.policy import check_policy
from steppe.measures.randomness import Key, generator
from steppe.measures.smoothness import refuse_kinked_loss
from steppe.problems import Problem
from steppe.problems.networks.closed_form import ClosedForm


def trace(
    problem: Problem,
    w: Array,
    *,
    rtol: float = 0.05,
    confidence: float = 0.99,
    max_matvecs: int = 1000,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> Estimate:
    """tr ∇²L(w), with `parts` gauss_newton and residual.

    ∇²L = (1/n) Σᵢ [J_iᵀ ℓ″ J_i + Σ_c ℓ′_c ∇²f_c(xᵢ)]: the first part needs the gradient of each output, the second
    vanishes at an interpolator and, in trace, for networks of ReLU layers everywhere.

    Exact where that is affordable: for networks with a closed form (one forward pass), and for at most `max_matvecs`
    parameters (a product for each, or a backward pass for each output). Otherwise the first part is exact if the
    Jacobian is small enough to walk through, and XTrace estimates the rest, to an interval of relative width rtol
    that holds the truth with probability `confidence`; within `memory`, which at millions of parameters may end it
    before that width.

    >>> import jax.numpy as jnp, steppe
    >>> p = Problem(lambda w, x: w[0] * w[1] * x, jnp.ones(2), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)
    >>> trace(p, p.w0).value                                        # L = ½(w₁w₂ − 1)² at (1, 1)
    2.0

    Epperly, Tropp and Webber 2024 for XTrace.
    """
    check_policy(
        problem, rtol=rtol, confidence=confidence, max_matvecs=max_matvecs,
        statistics=statistics, memory=memory, key=key,
    )  # fmt: skip
    meant, w, pieces = settled(residual.model, problem, w, statistics=statistics, memory=memory)
    max_matvecs = check.integer("max_matvecs", max_matvecs, minimum=1)
    refuse_kinked_loss(meant, w)
    if isinstance(meant.predict, ClosedForm):
        return measured(_sum(*closed_form(meant, w), matvecs=0), statistics)
    walked = walkable(meant, w, pieces, max_matvecs)
    if w.size <= max_matvecs:
        at_once = int(memory // max(1, held(residual.model, meant, w)))

        def summed(part: Curvature) -> Array:
            return diagonal_sum(part(problem, w, statistics=statistics, memory=memory).product, w, at_once)

        known = gauss_newton_trace(meant, w, pieces) if walked else summed(gauss_newton)
        return measured(_sum(known, summed(residual), matvecs=w.size if walked else 2 * w.size), statistics)
    if not walked:
        return measured(_both_estimated(problem, w, rtol, confidence, max_matvecs, statistics, memory, key), statistics)
    known = gauss_newton_trace(meant, w, pieces)
    rest = residual(problem, w, statistics=statistics, memory=memory)
    # tr(R + g/p I) = tr ∇²L: the accuracy asked for is that of the sum, and a multiple of I has no variance.
    shift = np.asarray(known)[()] / w.size
    total = linalg.xtrace(
        lambda v: rest(v) + shift * np.asarray(v, w.dtype),
        w.size,
        rtol=rtol,
        confidence=confidence,
        max_matvecs=max_matvecs,
        memory=memory,
        key=generator(key),
    )
    return measured(_split(total, Estimate.exact(float(known))), statistics)


def _sum(gauss_newton: Array, residual: Array, *, matvecs: int) -> Estimate:
    parts = {"gauss_newton": Estimate.exact(float(gauss_newton)), "residual": Estimate.exact(float(residual))}
    return Estimate.exact(float(gauss_newton + residual), matvecs=matvecs, parts=parts)


def _both_estimated(
    problem: Problem,
    w: Array,
    rtol: float,
    confidence: float,
    max_matvecs: int,
    statistics: Statistics,
    memory: float,
    key: Key,
) -> Estimate:
    rng = generator(key)
    total, known = (
        linalg.xtrace(
            curvature(problem, w, statistics=statistics, memory=memory),
            w.size,
            rtol=rtol,
            confidence=confidence,
            max_matvecs=max_matvecs,
            memory=memory,
            key=rng,
        )
        for curvature in (hessian, gauss_newton)
    )
    return _split(total, known)


def _split(total: Estimate, known: Estimate) -> Estimate:
    """The total with its parts; the residual one is the difference, and holds where both others do."""
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
