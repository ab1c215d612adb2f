"""Rayleigh-Ritz with some products fresh and some of an earlier operator."""

import numpy as np

from steppe.linalg.arguments import Matrix, Vector
from steppe.linalg.subspace import Subspace


def blend(fresh: Subspace, stale: Matrix, values: Vector) -> tuple[Vector, Matrix]:
    """Approximate eigenpairs of A (values descending, vectors as rows) on the span of `fresh` and of the rows
    `stale`, of which only the ⟨s_i, A₀ s_j⟩ = values_i δ_ij of an earlier A₀ ≈ A are known.

    The couplings ⟨v, A s⟩ = ⟨R_v, s⟩ are exact, so a stale vector that begins to mix with a fresh one is seen
    although it was not multiplied.

    >>> e = np.eye(3)   # A = [[2, 1], [1, 2]] on e₁, e₂, of which only A e₁ = 2 e₁ + e₂ is known
    >>> known = Subspace(e[:1], np.array([[2.0]]), e[1:2], 0.0)
    >>> blend(known, e[1:2], np.array([2.0]))[0].round(9).tolist()
    [3.0, 1.0]
    """
    outside = stale - (stale @ fresh.rows.T) @ fresh.rows
    length, U = np.linalg.eigh(outside @ outside.T)  # sin² of the angles to the fresh space
    kept = length > 0.5  # what lies mostly in it is fresh already
    S = (U[:, kept] / np.sqrt(length[kept])).T @ outside
    coupling = fresh.residuals @ S.T
    block = U[:, kept].T @ (values[:, None] * U[:, kept])
    theta, T = np.linalg.eigh(np.block([[fresh.H, coupling], [coupling.T, block]]))
    return theta[::-1], T[:, ::-1].T @ np.vstack([fresh.rows, S])
