"""Flatness that rescaling cannot change: trace and sharpness of the flattest rescaling of the network."""

from collections.abc import Sequence
from typing import Any

from steppe.curvature._inputs import vector
from steppe.estimate import Estimate
from steppe.flattening import Neurons, flatten
from steppe.problem import Problem


def invariant_trace(
    problem: Problem, w: Any = None, *, layers: Sequence[Neurons] | None = None, rtol: float = 1e-8
) -> Estimate:
    """min tr G over all rescalings of hidden neurons: a property of the function, not of its parameters.

    G is the Gauss-Newton matrix, the Hessian at an interpolator. Every rescaling gives an upper bound; the certificate
    of `steppe.flatten` gives the lower bound. `layers` and `rtol` are those of `steppe.flatten`; `converged` says
    whether the bounds are within rtol.

    >>> import jax.numpy as jnp, steppe
    >>> net = steppe.networks.TwoLayer(bias=False)
    >>> for a in (1.0, 1000.0):                                     # f = 8 relu(x) both times, tr G = 2 |w₁w₂|
    ...     params = {"W1": jnp.array([[8.0 * a]]), "W2": jnp.array([1 / a])}
    ...     p = steppe.Problem(net, params, jnp.array([[1.0]]), jnp.array([8.0]), steppe.losses.half_mse)
    ...     print(f"{steppe.measures.trace(p).value:.4g} {invariant_trace(p).value:.4f}")
    65 16.0000
    6.4e+07 16.0000

    Dinh et al. 2017 object that flatness depends on the scale of the parameters; this trace does not.
    """
    return _least("trace", problem, w, layers, rtol)


def invariant_sharpness(
    problem: Problem, w: Any = None, *, layers: Sequence[Neurons] | None = None, rtol: float = 1e-8
) -> Estimate:
    """min λ_max(G) over all rescalings of hidden neurons, with the arguments of `invariant_trace`.

    For large problems (see `steppe.flatten`) λ_max itself is an interval, and the upper end holds with probability
    `confidence`.

    >>> import jax.numpy as jnp, steppe
    >>> net = steppe.networks.TwoLayer(bias=False)
    >>> params = {"W1": jnp.array([[8.0]]), "W2": jnp.array([1.0])}
    >>> p = steppe.Problem(net, params, jnp.array([[1.0]]), jnp.array([8.0]), steppe.losses.half_mse)
    >>> round(invariant_sharpness(p).value, 5)                      # one example: G has rank one
    16.0
    """
    return _least("sharpness", problem, w, layers, rtol)


def _least(measure: str, problem: Problem, w: Any, layers: Sequence[Neurons] | None, rtol: float) -> Estimate:
    best = flatten(problem, vector(problem, w), measure=measure, layers=layers, rtol=rtol)
    return Estimate(best.value, best.lower, best.upper, best.confidence, converged=best.gap <= rtol)
