"""The Fisher information matrix: its largest eigenvalue and its trace."""

from jax import Array

from steppe import linalg
from steppe._random import Key, generator
from steppe.curvature import AnyProblem, Statistics, backend, empirical_fisher, fisher
from steppe.curvature._operator import MEMORY
from steppe.curvature._statistics import FULL_BATCH
from steppe.estimate import Accuracy, Estimate
from steppe.linalg._extreme import EIGENVALUE
from steppe.linalg._trace import TRACE
from steppe.measures._policy import check_policy, measured
from steppe.measures._sharpness import sharpness


def fisher_sharpness(
    problem: AnyProblem,
    w: Array | None = None,
    *,
    empirical: bool = False,
    accuracy: Accuracy = EIGENVALUE,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> Estimate:
    """λ_max of F = (1/n) Σᵢ J_iᵀ Cov(∇_f ℓ) J_i, labels drawn from the model; with `empirical`, of (1/n) Σᵢ ∇ℓᵢ∇ℓᵢᵀ.

    It is computed in the space of outputs, n·c wide, if that is smaller than the space of parameters.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: x @ w, jnp.ones(2), jnp.array([[3.0, 4.0]]), jnp.zeros(1),
    ...                    steppe.losses.half_mse)
    >>> fisher_sharpness(p).value, fisher_sharpness(p, empirical=True).value     # ‖x‖², and (f − y)² ‖x‖²
    (25.0, 1225.0)

    Liang, Poggio, Rakhlin and Stokes 2019.
    """
    curvature = empirical_fisher if empirical else fisher
    return sharpness(
        problem, w, accuracy=accuracy, curvature=curvature, statistics=statistics, memory=memory, key=key
    )  # fmt: skip


def fisher_trace(
    problem: AnyProblem,
    w: Array | None = None,
    *,
    empirical: bool = False,
    accuracy: Accuracy = TRACE,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> Estimate:
    """tr F; with `empirical`, the mean of ‖∇ℓᵢ‖².

    It is exact if the Jacobian of all outputs is small enough, otherwise estimated by XTrace as in `trace`.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: x @ w, jnp.ones(2), jnp.array([[3.0, 4.0]]), jnp.zeros(1),
    ...                    steppe.losses.half_mse)
    >>> fisher_trace(p).value
    25.0
    """
    check_policy(problem, accuracy=accuracy, statistics=statistics, memory=memory, key=key)
    curvature = empirical_fisher if empirical else fisher
    assert curvature.root is not None
    exact = backend(problem).exact_traces(curvature, problem, w, statistics=statistics, memory=memory)
    if exact.is_cheap(accuracy.max_matvecs):
        return measured(Estimate.exact(float(exact.rooted(curvature.root))), problem, statistics)
    operator = backend(problem).smaller(curvature, problem, w, statistics=statistics, memory=memory)
    estimate = linalg.xtrace(
        operator, operator.size, accuracy=accuracy, precision=operator.precision, memory=memory, key=generator(key)
    )
    return measured(estimate, problem, statistics)
