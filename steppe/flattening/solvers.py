"""The two measures: the diagonal of G suffices for the trace, the sharpness needs all of its root."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jax import Array
from numpy.typing import NDArray
from scipy.sparse import csr_array

from steppe.constructions._examples import Floats
from steppe.constructions.flattest import Rescaling, balance, circulating, flattest, lower_bound
from steppe.flattening import curvature
from steppe.flattening.switched_off import switched_off
from steppe.problems import Problem


class Found(NamedTuple):
    """Log-scales t, the factors of the parameters that they make, the value there, and what no t falls below."""

    t: Floats
    factors: Floats
    value: float
    lower: float
    before: float
    unattained: NDArray[np.int64]


def least_trace(problem: Problem, w: Array, A: csr_array, rtol: float) -> Found:
    """Σ_k G_kk e^{−2(At)_k}: matrix balancing."""
    weights = curvature.diagonal(problem, w)
    t = balance(A, weights)
    off = switched_off(A, weights, np.asarray(w, dtype=float))
    value = float(np.sum(weights * np.exp(-2 * (A @ t)) * off.derivatives))
    factors = np.exp(A @ t) * off.factors
    return Found(t, factors, value, lower_bound(A, weights, t), float(np.sum(weights)), off.unattained)


def least_sharpness(problem: Problem, w: Array, A: csr_array, rtol: float) -> Found:
    """λ_max of the Gram matrix of the root, over the columns that no direction sends to zero; the others are added
    to the value that is reported, not to the bound."""
    root = curvature.root(problem, w)
    weights = np.sum(root**2, axis=0)
    kept = circulating(A, weights)
    best = flattest(Rescaling(root[:, kept], A[kept]), rtol=rtol)
    off = switched_off(A, weights, np.asarray(w, dtype=float))
    whole = Rescaling(root * off.derivatives, A)
    value, before = (float(np.linalg.eigvalsh(M)[-1]) for M in (whole.gram(best.t), root @ root.T))
    return Found(best.t, np.exp(A @ best.t) * off.factors, value, best.lower, before, off.unattained)


SOLVERS: dict[str, Callable[[Problem, Array, csr_array, float], Found]] = {
    "trace": least_trace,
    "sharpness": least_sharpness,
}
