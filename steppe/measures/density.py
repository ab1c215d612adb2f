"""The density of the eigenvalues of the Hessian."""

import numpy as np
from jax import Array

from steppe import linalg
from steppe.measures.operators import FULL_BATCH, MEMORY, Curvature, Statistics, hessian
from steppe.measures.randomness import Key, generator
from steppe.problems import Problem


def density(
    problem: Problem,
    w: Array,
    *,
    probes: int = 8,
    steps: int = 64,
    width: float | None = None,
    grid: np.ndarray | None = None,
    curvature: Curvature = hessian,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> linalg.Density:
    """(1/p) Σ_k δ(x − λ_k) of ∇²L(w), smoothed by a Gaussian of standard deviation `width`, with its standard error.

    Stochastic Lanczos quadrature with `probes` random vectors of `steps` products each. Its mean times p is tr ∇²L
    within the error of the probes, its bulk is trustworthy, a single outlier shows with weight 1/p on average: take
    `top_eigenvalues` for those.

    >>> import jax.numpy as jnp, steppe
    >>> p = Problem(lambda w, x: w[0] * w[1] * x, jnp.ones(2), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)
    >>> found = density(p, p.w0, probes=2, steps=2)                 # eigenvalues 0 and 2
    >>> round(float(found.nodes.max()), 6)
    2.0

    Ghorbani, Krishnan and Xiao 2019.
    """
    operator = curvature(problem, w, statistics=statistics, memory=memory)
    with linalg.one_thread():
        return linalg.spectral_density(
            operator, operator.size, probes=probes, steps=steps, width=width, grid=grid, key=generator(key)
        )
