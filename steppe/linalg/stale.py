"""Rayleigh-Ritz with some products fresh and some of an earlier operator."""

import numpy as np

from steppe.linalg.arguments import Matrix, Vector
from steppe.linalg.subspace import Subspace


def blend(fresh: Subspace, stale: Matrix, values: Vector) -> tuple[Vector, Matrix]:
    """Approximate eigenpairs of A (vectors as rows) on the span of `fresh`, in Ritz form, and of the rows `stale`, of
    which only the ⟨s_i, A₀ s_j⟩ = values_i δ_ij of an earlier A₀ ≈ A are known.

    The couplings ⟨v, A s⟩ = ⟨R_v, s⟩ are exact, so a stale vector that begins to mix with a fresh one is seen
    although it was not multiplied. The leading pair of `fresh` stays first, as it is: what older products make of
    it is a guess. The others follow in descending order.

    >>> e = np.eye(3)   # A = 5 on e₁ and [[2, 1], [1, 2]] on e₂, e₃, of which A e₃ is not known but was 2 e₃
    >>> known = Subspace(e[:2], np.diag([5.0, 2.0]), np.stack([0 * e[0], e[2]]), 0.0)
    >>> blend(known, e[2:], np.array([2.0]))[0].round(9).tolist()
    [5.0, 3.0, 1.0]
    """
    outside = stale - (stale @ fresh.rows.T) @ fresh.rows
    length, U = np.linalg.eigh(outside @ outside.T)  # sin² of the angles to the fresh space
    kept = length > 0.5  # what lies mostly in it is fresh already
    S = (U[:, kept] / np.sqrt(length[kept])).T @ outside
    coupling = fresh.residuals[1:] @ S.T
    block = U[:, kept].T @ (values[:, None] * U[:, kept])
    theta, T = np.linalg.eigh(np.block([[fresh.H[1:, 1:], coupling], [coupling.T, block]]))
    others = T[:, ::-1].T @ np.vstack([fresh.rows[1:], S])
    return np.append(fresh.values[:1], theta[::-1]), np.vstack([fresh.rows[:1], others])
