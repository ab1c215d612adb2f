"""The same M(t) with fewer columns: those that share all exponents act as one positive semi-definite matrix."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from steppe.linalg.rescaling.rescaling import Floats, Rescaling


class Alike(NamedTuple):
    """Groups of columns with equal exponents: the `first` of each, the group that each column is `of`, the `sizes`."""

    first: NDArray[np.int64]
    of: NDArray[np.int64]
    sizes: NDArray[np.int64]


def alike(exponents: csr_array) -> Alike:
    """All weights from the inputs into one neuron have the same exponents, for example."""
    # Equal rows have equal sums with any weights; unequal ones not with random weights.
    sums = exponents @ np.random.default_rng(0).standard_normal(exponents.shape[1])
    _, *found = np.unique(sums, return_index=True, return_inverse=True, return_counts=True)
    return Alike(*found)


def merged(exponents: csr_array, weights: Floats) -> tuple[csr_array, Floats]:
    """The function Σ_k w_k e^{−2(At)_k} with one term for each set of equal exponents.

    >>> A, w = merged(csr_array([[1.0], [1.0], [-1.0]]), np.array([3.0, 4.0, 5.0]))
    >>> A.toarray().tolist(), w.tolist()
    ([[-1.0], [1.0]], [5.0, 7.0])
    """
    groups = alike(exponents)
    sums: Floats = np.bincount(groups.of, weights).astype(float)
    return csr_array(exponents[groups.first]), sums


def compressed(form: Rescaling) -> Rescaling:
    """At most N columns for each set of equal exponents: J Jᵀ = RᵀR with R of a QR decomposition of Jᵀ.

    >>> form = Rescaling.of([([[3.0, 4.0]], -1, 0), ([[1.0]], 0, -1)], 1)
    >>> abs(compressed(form).jacobian).tolist()
    [[1.0, 5.0]]
    """
    N, groups = len(form.jacobian), alike(form.exponents)
    large = np.flatnonzero(groups.sizes > N)
    alone = np.flatnonzero(~np.isin(groups.of, large))
    order, ends = np.argsort(groups.of, kind="stable"), np.cumsum(groups.sizes)
    blocks, columns = [form.jacobian[:, alone]], [alone]
    for group in large:
        members = order[ends[group] - groups.sizes[group] : ends[group]]
        blocks.append(np.linalg.qr(form.jacobian[:, members].T).R.T)
        columns.append(np.full(N, groups.first[group]))
    return Rescaling(np.hstack(blocks), csr_array(form.exponents[np.concatenate(columns)]))
