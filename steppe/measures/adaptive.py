"""Adaptive sharpness: the increase of the loss under steps relative to the size of each parameter."""

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check
from steppe.estimate import Estimate
from steppe.measures.ascent import largest_increase
from steppe.measures.gaussian import expected_increase
from steppe.measures.inputs import prepared
from steppe.measures.measured import measured
from steppe.measures.operators import FULL_BATCH, MEMORY, Statistics
from steppe.measures.policy import check_policy
from steppe.measures.randomness import Key
from steppe.problems import Problem


def adaptive_sharpness(
    problem: Problem,
    w: Array,
    *,
    kind: Literal["average", "worst"] = "average",
    radius: float = 0.1,
    rtol: float = 0.1,
    confidence: float = 0.99,
    max_evaluations: int = 10_000,
    steps: int = 50,
    restarts: int = 4,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> Estimate:
    """The increase of the loss under a step δ_k = |w_k| ε_k, element-wise relative to the parameters:

        average   E L(w + |w| ⊙ ε) − L(w),  ε ~ N(0, ρ² I)
        worst     max L(w + |w| ⊙ ε) − L(w)  over  ‖ε‖₂ ≤ ρ

    with ρ = `radius`. Rescaling a neuron (incoming weights times s, outgoing ones divided by s) changes neither.

    The average is sampled, to an interval of relative width rtol. The worst case is sought by projected ascent of at
    most `steps` steps from the gradient and from `restarts` random points: what it finds is attained, hence `lower`;
    nothing proves that there is no higher point, hence `upper` is infinite, and `converged` tells whether every
    ascent came to rest. `matvecs` counts evaluations of the loss, or of its gradient.

    >>> import steppe
    >>> p = Problem(lambda w, x: x @ w, jnp.array([2.0]), jnp.ones((1, 1)), jnp.array([2.0]), steppe.losses.half_mse)
    >>> round(adaptive_sharpness(p, p.w0, kind="worst", radius=0.5).value, 6)   # L = ½(w − 2)² at w = 2: step 2 · 0.5
    0.5

    Kwon, Kim, Park and Choi 2021 (element-wise, ℓ₂); Andriushchenko et al. 2023 for the average.
    """
    if kind not in ("average", "worst"):
        check.refuse("kind", "'average' or 'worst'", kind, "Pass one of them.")
    check_policy(problem, rtol=rtol, confidence=confidence, statistics=statistics, memory=memory, key=key)
    radius = check.number("radius", radius, above=0.0)
    check.integer("max_evaluations", max_evaluations, minimum=1)
    check.integer("steps", steps, minimum=1)
    check.integer("restarts", restarts, minimum=0)
    w = prepared(problem, w)
    size = np.abs(w)
    if kind == "average":
        estimate = expected_increase(
            problem, w, jnp.asarray(radius * size), rtol=rtol, confidence=confidence, max_evaluations=max_evaluations,
            statistics=statistics, memory=memory, key=key,
        )  # fmt: skip
    else:
        estimate = largest_increase(
            problem, w, jnp.asarray(size), radius, steps=steps, restarts=restarts,
            statistics=statistics, memory=memory, key=key,
        )  # fmt: skip
    return measured(estimate, statistics)
