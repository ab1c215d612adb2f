"""Neurons that cost something and do nothing: no scale is the best, unless it is zero."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from steppe.linalg.rescaling import Floats


class SwitchedOff(NamedTuple):
    """`factors` of the parameters and of their derivatives, 0 or 1, and the neurons that only an infinite scale
    would switch off."""

    factors: Floats
    derivatives: Floats
    unattained: NDArray[np.int64]


def switched_off(exponents: csr_array, weights: Floats, w: Floats) -> SwitchedOff:
    """A neuron felt on one side only: t → ±∞ takes its cost to nothing.

    If all that leads out of it is zero, what leads into it may be set to zero, and the limit is reached; likewise the
    other way round.
    """
    factors, derivatives, unattained = np.ones(exponents.shape[0]), np.ones(exponents.shape[0]), []
    by_neuron = exponents.tocsc()
    felt = {sign: ((sign * exponents) > 0).T.astype(float) @ (weights > 0).astype(float) > 0 for sign in (1, -1)}
    for u in np.flatnonzero(felt[1] != felt[-1]):
        own = slice(by_neuron.indptr[u], by_neuron.indptr[u + 1])
        parameters, powers = by_neuron.indices[own], by_neuron.data[own]
        silent = powers < 0 if felt[1][u] == 0 else powers > 0
        if (w[parameters[silent]] == 0).all():
            factors[parameters[~silent]] = derivatives[parameters] = 0.0
        else:
            unattained.append(u)
    return SwitchedOff(factors, derivatives, np.array(unattained, dtype=np.int64))
