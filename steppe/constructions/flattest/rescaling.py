"""All rescalings of a positively homogeneous net: what a log-scale t_u for every hidden neuron u does to curvature.

Incoming weights and bias of neuron u times e^{t_u}, outgoing weights times e^{−t_u}: the function stays, and the
derivative in a weight from src to dst is multiplied by e^{−(t_dst − t_src)}. So with J_c the columns of the Jacobian
that share src and dst, the Gram matrix of the Jacobian is

    M(t) = Σ_c e^{−2(t_dst(c) − t_src(c))} J_c J_cᵀ,

convex in t as a quadratic form, and so is its largest eigenvalue. An end of a weight that is no hidden neuron (input,
output, the outgoing end of nothing) has t = 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steppe import check
from steppe.constructions._examples import Floats

OUTSIDE = -1


@dataclass(frozen=True, eq=False)
class Rescaling:
    """Terms c with Gram matrices J_c J_cᵀ (N, N), from neuron src[c] to neuron dst[c]; OUTSIDE where that is none.

    Neurons are numbered in an order in which signals pass them: src < dst wherever both are hidden.
    """

    grams: Floats
    dst: NDArray[np.int64]
    src: NDArray[np.int64]
    units: int

    @classmethod
    def of(cls, terms: Sequence[tuple[Any, int, int]], units: int) -> "Rescaling":
        """From (J_c, src, dst) with J_c of shape (N, columns)."""
        if not terms:
            check.refuse("terms", "at least one (J, src, dst)", terms, "Pass the columns of the Jacobian.")
        factors = [np.asarray(J, dtype=float) for J, _, _ in terms]
        src, dst = (np.array([term[k] for term in terms], dtype=np.int64) for k in (1, 2))
        for J in factors:
            check.finite("terms", J)
        hidden = (src != OUTSIDE) & (dst != OUTSIDE)
        if (src[hidden] >= dst[hidden]).any() or max(src.max(), dst.max()) >= units:
            got = list(zip(src.tolist(), dst.tolist(), strict=True))
            check.refuse("terms", f"from lower to higher of {units} neurons", got, "Number them layer by layer.")
        return cls(np.stack([J @ J.T for J in factors]), dst, src, units)

    def scales(self, t: Floats) -> Floats:
        """e^{−2(t_dst − t_src)} of every term."""
        padded = np.append(t, 0.0)  # OUTSIDE is the last entry
        scales: Floats = np.exp(-2 * (padded[self.dst] - padded[self.src]))
        return scales

    def gram(self, t: Floats) -> Floats:
        """M(t)."""
        M: Floats = np.tensordot(self.scales(t), self.grams, axes=1)
        return M

    def weights(self, Q: Floats) -> Floats:
        """⟨J_c J_cᵀ, Q⟩ ≥ 0 of every term at t = 0, for Q ⪰ 0."""
        # Rounding may leave a zero negative, and a negative weight has no minimum.
        weights: Floats = np.maximum(np.tensordot(self.grams, Q, axes=2), 0.0)
        return weights

    def incidence(self) -> Floats:
        """B (terms, units): the exponent of term c is −2 (Bt)_c."""
        B = np.zeros((len(self.dst), self.units + 1))
        terms = np.arange(len(self.dst))
        B[terms, self.dst] += 1
        B[terms, self.src] -= 1
        return B[:, :-1]
