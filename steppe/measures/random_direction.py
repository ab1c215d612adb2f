"""The other definition of sharpness in wen2023: the expected increase of the loss in a random direction."""

import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check
from steppe.estimate import Estimate
from steppe.measures.gaussian import expected_increase
from steppe.measures.measured import measured
from steppe.measures.operators import FULL_BATCH, MEMORY, Statistics
from steppe.measures.policy import check_policy
from steppe.measures.randomness import Key
from steppe.problems import Problem


def random_direction_sharpness(
    problem: Problem,
    w: Array,
    *,
    sigma: float = 0.01,
    rtol: float = 0.1,
    confidence: float = 0.99,
    max_evaluations: int = 10_000,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> Estimate:
    """E L(w + σ g) − L(w), g standard normal in all parameters: (σ²/2) tr ∇²L(w) to leading order in σ.

    `matvecs` counts evaluations of the loss.

    >>> import steppe
    >>> p = Problem(lambda w, x: x @ w, jnp.ones(2), jnp.eye(2), jnp.zeros(2), steppe.losses.half_mse)
    >>> e = random_direction_sharpness(p, p.w0, sigma=1.0)          # tr ∇²L = 1, and L is quadratic
    >>> e.lower <= 0.5 <= e.upper
    True

    wen2023, section 2, after Foret et al. 2021 and Orvieto et al. 2022.
    """
    check_policy(problem, rtol=rtol, confidence=confidence, statistics=statistics, memory=memory, key=key)
    sigma = check.number("sigma", sigma, above=0.0)
    scale = jnp.asarray(np.full(problem.w0.shape, sigma, problem.w0.dtype))
    estimate = expected_increase(
        problem,
        w,
        scale,
        rtol=rtol,
        confidence=confidence,
        max_evaluations=max_evaluations,
        statistics=statistics,
        memory=memory,
        key=key,
    )
    return measured(estimate, statistics)
