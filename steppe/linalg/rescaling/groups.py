"""Which neurons may move to their own minima at once without going uphill together."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Indices = NDArray[np.int64]


def moving_at_once(exponents: csr_array) -> list[tuple[Indices, float]]:
    """(neurons, share of the step): layers of odd and of even number in turn, whole steps, where no parameter joins
    two neurons of a group; else all at once with 1/k of the step, k neurons seen by one parameter at most.

    The second cannot go uphill either: e^{(s₁ + … + s_k)/k} ≤ (e^{s₁} + … + e^{s_k})/k.

    >>> chain = csr_array([[1.0, 0.0, 0.0], [-1.0, 1.0, 0.0], [0.0, -1.0, 1.0], [0.0, 0.0, -1.0]])
    >>> [(group.tolist(), share) for group, share in moving_at_once(chain)]
    [([0, 2], 1.0), ([1], 1.0)]
    """
    touched = abs(exponents).sign()
    joined = csr_array(touched.T @ touched)
    parity = _parity(joined)
    groups = [np.flatnonzero(parity == side) for side in (0, 1)]
    # A neuron is joined with itself, by all its parameters.
    if all(joined[group][:, group].nnz == len(group) for group in groups):
        return [(group, 1.0) for group in groups if len(group)]
    return [(np.arange(exponents.shape[1]), 1.0 / float(touched.sum(axis=1).max()))]


def _parity(joined: csr_array) -> Indices:
    """The distance to the first neuron of the same component, modulo 2."""
    parity = np.full(joined.shape[0], -1)
    for first in range(joined.shape[0]):
        frontier, side = np.array([first]), 0
        while len(frontier := frontier[parity[frontier] < 0]):
            parity[frontier], side = side, 1 - side
            frontier = np.unique(joined[frontier].indices)
    return parity
