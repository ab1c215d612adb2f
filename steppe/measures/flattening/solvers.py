"""The two measures: the diagonal of G suffices for the trace, the sharpness needs its root, or products with it."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from scipy.sparse import csr_array

from steppe import linalg
from steppe.estimate import Estimate
from steppe.linalg.rescaling import Floats, Rescaling, balance, circulating, flattest, lower_bound, merged, tracked
from steppe.measures.flattening import curvature
from steppe.measures.flattening.jacobian import Jacobian
from steppe.measures.flattening.switched_off import switched_off
from steppe.measures.operators.gauss_newton import gauss_newton
from steppe.measures.operators.gram import gram, rank
from steppe.problems import Problem

# Numbers in the derivatives of M by all neurons: 512 MB, beyond which the top eigenvectors are tracked instead.
_SLOPES = 2**26
# The relative gap asked for where they are, and the share of it spent on not knowing λ_max exactly.
_GAP, _SHARE = 1e-3, 0.2


class Found(NamedTuple):
    """Log-scales t, the factors of the parameters that they make, the value there, and what no t falls below."""

    t: Floats
    factors: Floats
    value: Estimate
    lower: float
    before: Estimate
    unattained: NDArray[np.int64]


def least_trace(problem: Problem, w: Array, A: csr_array, rtol: float) -> Found:
    """Σ_k G_kk e^{−2(At)_k}: matrix balancing."""
    weights = curvature.diagonal(problem, w)
    small = merged(A, weights)
    t = balance(*small)
    off = switched_off(A, weights, np.asarray(w, dtype=float))
    value = Estimate.exact(np.sum(weights * np.exp(-2 * (A @ t)) * off.derivatives))
    factors = np.exp(A @ t) * off.factors
    return Found(t, factors, value, lower_bound(*small, t), Estimate.exact(np.sum(weights)), off.unattained)


def least_sharpness(problem: Problem, w: Array, A: csr_array, rtol: float) -> Found:
    """λ_max over the columns that no direction sends to zero; the others are added to the value that is reported, not
    to the bound."""
    rows = rank(gauss_newton, problem, w)
    if rows**2 * A.shape[1] > _SLOPES or rows * w.size > curvature.KEPT:
        return _by_products(problem, w, A, max(rtol, _GAP))
    root = curvature.root(problem, w)
    weights = np.sum(root**2, axis=0)
    kept = circulating(A, weights)
    best = flattest(Rescaling(root[:, kept], A[kept]), rtol=rtol)
    off = switched_off(A, weights, np.asarray(w, dtype=float))
    whole = Rescaling(root * off.derivatives, A)
    value, before = (Estimate.exact(np.linalg.eigvalsh(M)[-1]) for M in (whole.gram(best.t), root @ root.T))
    return Found(best.t, np.exp(A @ best.t) * off.factors, value, best.lower, before, off.unattained)


def _by_products(problem: Problem, w: Array, A: csr_array, rtol: float) -> Found:
    """The same without the root: its top singular vectors are tracked."""
    weights = curvature.diagonal(problem, w)
    kept = circulating(A, weights)
    start = balance(*merged(A, weights))
    best = tracked(Jacobian.of(problem, w, kept), A[kept], start, rtol=(1 - _SHARE) * rtol)
    off = switched_off(A, weights, np.asarray(w, dtype=float))
    factors = np.exp(A @ best.t) * off.factors
    there = jnp.asarray(np.asarray(w, dtype=float) * factors, w.dtype)
    value, before = _largest(problem, there, _SHARE * rtol, best.vector), _largest(problem, w, _SHARE * rtol)
    return Found(best.t, factors, value, best.lower, before, off.unattained)


def _largest(problem: Problem, w: Array, rtol: float, start: Floats | None = None) -> Estimate:
    operator = gram(gauss_newton, problem, w)
    return linalg.largest(operator, operator.size, rtol=rtol, start=start, key=0).estimate


SOLVERS: dict[str, Callable[[Problem, Array, csr_array, float], Found]] = {
    "trace": least_trace,
    "sharpness": least_sharpness,
}
