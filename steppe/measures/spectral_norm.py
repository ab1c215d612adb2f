"""The largest magnitude of an eigenvalue of the Hessian."""

from jax import Array

from steppe import linalg
from steppe.estimate import Estimate
from steppe.measures.measured import measured
from steppe.measures.operators import FULL_BATCH, MEMORY, Curvature, Statistics, hessian, smaller
from steppe.measures.policy import check_policy
from steppe.measures.randomness import Key, generator
from steppe.measures.sharpness import warn_of_kinks
from steppe.problems import Problem


def spectral_norm(
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
    """‖∇²L(w)‖ = max |λ|, with the arguments of `sharpness`.

    It is the sharpness unless the most negative eigenvalue is the larger one, as it may be at a start far from any
    minimum: power iteration then converges to it and calls it sharpness.

    >>> import jax.numpy as jnp, steppe
    >>> p = Problem(lambda w, x: w[0] * w[1] * x, jnp.zeros(2), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)
    >>> round(spectral_norm(p, p.w0).value, 6)                      # ∇²L = [[0, −1], [−1, 0]] at 0
    1.0
    """
    check_policy(
        problem, rtol=rtol, confidence=confidence, max_matvecs=max_matvecs,
        curvature=curvature, statistics=statistics, memory=memory, key=key,
    )  # fmt: skip
    operator = smaller(curvature, problem, w, statistics=statistics, memory=memory)
    warn_of_kinks(problem, w)
    with linalg.one_thread():
        pair = linalg.spectral_norm(
            operator,
            operator.size,
            rtol=rtol,
            confidence=confidence,
            max_matvecs=max_matvecs,
            key=generator(key),
        )
    return measured(pair.estimate, statistics)
