"""All rescalings of a positively homogeneous net: what a log-scale t_u for every hidden neuron u does to curvature.

Incoming weights and bias of neuron u times e^{t_u}, outgoing weights times e^{−t_u}: the function stays. In general a
parameter θ_k goes to θ_k e^{(At)_k} with A of whole numbers: +1 where it leads into u, −1 where it leads out of u (−c
for an activation of degree c), 0 elsewhere. The derivative in θ_k is then multiplied by e^{−(At)_k}, so with j_k the
columns of the Jacobian its Gram matrix is

    M(t) = Σ_k e^{−2(At)_k} j_k j_kᵀ,

convex in t as a quadratic form, and so is its largest eigenvalue.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from steppe import check

Floats = NDArray[np.float64]
OUTSIDE = -1


def exponents(src: Any, dst: Any, units: int) -> csr_array:
    """A (parameters, units) of parameters that lead from neuron src to neuron dst; OUTSIDE where that is none."""
    ends, signs = np.stack([dst, src]), np.array([[1.0], [-1.0]])
    rows = np.broadcast_to(np.arange(ends.shape[1]), ends.shape)
    hidden = ends != OUTSIDE
    entries = (np.broadcast_to(signs, ends.shape)[hidden], (rows[hidden], ends[hidden]))
    return csr_array(entries, shape=(ends.shape[1], units))


@dataclass(frozen=True, eq=False)
class Rescaling:
    """The Jacobian (N, parameters), whose M(t) is meant, and the exponents A (parameters, units) of its columns."""

    jacobian: Floats
    exponents: csr_array

    @classmethod
    def of(cls, terms: Sequence[tuple[Any, int, int]], units: int) -> "Rescaling":
        """From (J, src, dst) with J of shape (N, columns) that share both ends."""
        if not terms:
            check.refuse("terms", "at least one (J, src, dst)", terms, "Pass the columns of the Jacobian.")
        blocks = [np.asarray(J, dtype=float) for J, _, _ in terms]
        for J in blocks:
            check.finite("terms", J)
        ends = np.array([term[1:] for term in terms], dtype=np.int64)
        if ends.min() < OUTSIDE or ends.max() >= units:
            got = [tuple(pair) for pair in ends.tolist()]
            check.refuse("terms", f"between {units} neurons, numbered from 0, or OUTSIDE", got, "Number the neurons.")
        src, dst = np.repeat(ends, [J.shape[1] for J in blocks], axis=0).T
        return cls(np.concatenate(blocks, axis=1), exponents(src, dst, units))

    @property
    def units(self) -> int:
        return int(self.exponents.shape[1])

    def scales(self, t: Floats) -> Floats:
        """e^{−2(At)_k} of every column."""
        scales: Floats = np.exp(-2 * (self.exponents @ t))
        return scales

    def gram(self, t: Floats) -> Floats:
        """M(t)."""
        M: Floats = (self.jacobian * self.scales(t)) @ self.jacobian.T
        return M

    def weights(self, Q: Floats) -> Floats:
        """j_kᵀ Q j_k ≥ 0 of every column at t = 0, for Q ⪰ 0."""
        # Rounding may leave a zero negative, and a negative weight has no minimum.
        weights: Floats = np.maximum(np.sum(self.jacobian * (Q @ self.jacobian), axis=0), 0.0)
        return weights
