"""The Fisher information matrix: its largest eigenvalue and its trace."""

from jax import Array

from steppe import check, linalg
from steppe._random import Key, generator
from steppe.curvature import FULL_BATCH, MEMORY, Statistics, empirical_fisher, fisher, smaller
from steppe.curvature._operator import settled
from steppe.curvature._smoothness import refuse_kinked_loss
from steppe.estimate import Accuracy, Estimate
from steppe.measures._policy import check_policy, measured
from steppe.measures._sharpness import sharpness
from steppe.measures._trace import squared_rows, walkable
from steppe.problem import Problem


def fisher_sharpness(
    problem: Problem,
    w: Array,
    *,
    empirical: bool = False,
    rtol: float = 1e-3,
    confidence: float = 0.99,
    max_matvecs: int = 1000,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> Estimate:
    """λ_max of F = (1/n) Σᵢ J_iᵀ Cov(∇_f ℓ) J_i, labels drawn from the model; with `empirical`, of (1/n) Σᵢ ∇ℓᵢ∇ℓᵢᵀ.

    Found in the space of outputs, n·c wide, where that is smaller than the space of parameters.

    >>> import jax.numpy as jnp, steppe
    >>> p = Problem(lambda w, x: x @ w, jnp.ones(2), jnp.array([[3.0, 4.0]]), jnp.zeros(1), steppe.losses.half_mse)
    >>> fisher_sharpness(p, p.w0).value, fisher_sharpness(p, p.w0, empirical=True).value     # ‖x‖², and (f − y)² ‖x‖²
    (25.0, 1225.0)

    Liang, Poggio, Rakhlin and Stokes 2019.
    """
    return sharpness(
        problem, w, rtol=rtol, confidence=confidence, max_matvecs=max_matvecs,
        curvature=empirical_fisher if empirical else fisher, statistics=statistics, memory=memory, key=key,
    )  # fmt: skip


def fisher_trace(
    problem: Problem,
    w: Array,
    *,
    empirical: bool = False,
    rtol: float = 0.05,
    confidence: float = 0.99,
    max_matvecs: int = 1000,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> Estimate:
    """tr F; with `empirical`, the mean of ‖∇ℓᵢ‖². Exact where the Jacobian of all outputs is small enough to walk
    through, otherwise by XTrace as in `trace`.

    >>> import jax.numpy as jnp, steppe
    >>> p = Problem(lambda w, x: x @ w, jnp.ones(2), jnp.array([[3.0, 4.0]]), jnp.zeros(1), steppe.losses.half_mse)
    >>> fisher_trace(p, p.w0).value
    25.0
    """
    check_policy(
        problem, rtol=rtol, confidence=confidence, max_matvecs=max_matvecs,
        statistics=statistics, memory=memory, key=key,
    )  # fmt: skip
    curvature = empirical_fisher if empirical else fisher
    assert curvature.root is not None
    meant, vector, pieces = settled(curvature.model, problem, w, statistics=statistics, memory=memory)
    max_matvecs = check.integer("max_matvecs", max_matvecs, minimum=1)
    refuse_kinked_loss(meant, vector)
    if walkable(meant, vector, pieces, max_matvecs):
        return measured(Estimate.exact(float(squared_rows(curvature.root, meant, vector, pieces))), statistics)
    operator = smaller(curvature, problem, vector, statistics=statistics, memory=memory)
    estimate = linalg.xtrace(
        operator,
        operator.size,
        accuracy=Accuracy(rtol, confidence, max_matvecs),
        memory=memory,
        key=generator(key),
    )
    return measured(estimate, statistics)
