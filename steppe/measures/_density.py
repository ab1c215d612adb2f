"""The density of the eigenvalues of the Hessian."""

from dataclasses import dataclass, fields
from typing import final

import numpy as np
from jax import Array

from steppe import check, linalg
from steppe._random import Key, generator
from steppe.curvature import AnyProblem, Curvature, Statistics, backend, hessian
from steppe.curvature._operator import MEMORY
from steppe.curvature._statistics import FULL_BATCH
from steppe.measures._policy import check_policy


@final
@dataclass(frozen=True, eq=False, repr=False)
class MeasuredDensity(linalg.Density):
    """A `Density` of a curvature; `statistics` is "full batch", "frozen" or "chunks of k"."""

    statistics: str = "full batch"


def density(
    problem: AnyProblem,
    w: Array | None = None,
    *,
    probes: int = 8,
    steps: int = 64,
    width: float | None = None,
    grid: np.ndarray | None = None,
    curvature: Curvature = hessian,
    statistics: Statistics = FULL_BATCH,
    memory: float = MEMORY,
    key: Key = 0,
) -> MeasuredDensity:
    """(1/p) Σ_k δ(x − λ_k) of ∇²L(w), smoothed by a Gaussian of standard deviation `width`, with its standard error.

    Stochastic Lanczos quadrature with `probes` random vectors of `steps` products each. Its mean times p is tr ∇²L
    within the error of the probes. The bulk is reliable; a single outlier appears with weight 1/p only on average, so
    use `top_eigenvalues` for outliers.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: w[0] * w[1] * x, jnp.ones(2), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)
    >>> found = density(p, probes=2, steps=2)                       # eigenvalues 0 and 2
    >>> round(float(found.nodes.max()), 6)
    2.0

    Ghorbani, Krishnan and Xiao 2019.
    """
    check_policy(problem, curvature=curvature, statistics=statistics, memory=memory, key=key)
    if grid is not None:
        grid = _points(grid)
    operator = curvature(problem, w, statistics=statistics, memory=memory)
    with linalg.one_thread():
        found = linalg.spectral_density(
            operator, operator.size, probes=probes, steps=steps, width=width, grid=grid, precision=operator.precision,
            key=generator(key),
        )  # fmt: skip
    treatment = backend(problem).treatment(problem, statistics)
    return MeasuredDensity(**{f.name: getattr(found, f.name) for f in fields(found)}, statistics=treatment)


def _points(grid: np.ndarray) -> np.ndarray:
    """The grid as a vector, checked before the products and not after them as in linalg."""
    try:
        points = np.asarray(grid, dtype=np.float64)
    except (TypeError, ValueError):
        points = np.empty(())
    if points.ndim != 1:
        check.refuse("grid", "a vector of real numbers", grid, "Pass the points at which the density is evaluated.")
    check.finite("grid", points)
    return points
