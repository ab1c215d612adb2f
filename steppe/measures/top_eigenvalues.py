"""The k algebraically largest eigenvalues of the Hessian."""

from jax import Array

from steppe import check, linalg
from steppe.estimate import Estimate
from steppe.measures.measured import measured
from steppe.measures.operators import FULL_BATCH, MEMORY, Curvature, Statistics, hessian, smaller
from steppe.measures.policy import check_policy
from steppe.measures.randomness import Key, generator
from steppe.measures.sharpness import warn_of_kinks
from steppe.problems import Problem


def top_eigenvalues(
    problem: Problem,
    w: Array,
    k: int,
    *,
    rtol: float = 1e-3,
    confidence: float = 0.99,
    max_matvecs: int = 1000,
    block: int = 1,
    curvature: Curvature = hessian,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> tuple[Estimate, ...]:
    """λ₁ ≥ … ≥ λ_k of ∇²L(w), all intervals holding together with probability `confidence`.

    `block` vectors at once see as many copies of a multiple eigenvalue; take it as large as the cluster. The other
    arguments are those of `sharpness`.

    >>> import jax.numpy as jnp, steppe
    >>> p = Problem(lambda w, x: w[0] * w[1] * x, jnp.ones(2), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)
    >>> [abs(round(e.value, 6)) for e in top_eigenvalues(p, p.w0, 2)]
    [2.0, 0.0]
    """
    check_policy(
        problem, rtol=rtol, confidence=confidence, max_matvecs=max_matvecs,
        curvature=curvature, statistics=statistics, memory=memory, key=key,
    )  # fmt: skip
    block = check.integer("block", block, minimum=1)
    p = problem.w0.size
    if check.integer("k", k, minimum=1) > p:
        check.refuse("k", f"at most the number of parameters, {p}", k, "There are no more eigenvalues.")
    operator = smaller(curvature, problem, w, statistics=statistics, memory=memory)
    warn_of_kinks(problem, w)
    many = min(k, operator.size)
    with linalg.one_thread():
        pairs = linalg.top_eigenpairs(
            operator,
            operator.size,
            many,
            block=min(block, operator.size),
            rtol=rtol,
            confidence=confidence,
            max_matvecs=max_matvecs,
            basis=max(32, 2 * (many + 2 * block)),
            key=generator(key),
        )
    # A Gram matrix leaves out zeros only.
    zeros = [Estimate.exact(0.0)] * (k - many)
    return tuple(measured(e, statistics) for e in (*pairs.estimates, *zeros))
