"""Rayleigh-Ritz with some products fresh and some of an earlier operator."""

import numpy as np

from steppe.linalg.arguments import Matrix, Vector
from steppe.linalg.joint import Joint


def blend(fresh: Joint, stale: Matrix, values: Vector, count: int) -> tuple[Vector, Matrix]:
    """The first `count` approximate eigenpairs of A (vectors as rows) on the span of `fresh` and of the orthonormal
    rows `stale`, of which only the ⟨s_i, A₀ s_j⟩ = values_i δ_ij of an earlier A₀ ≈ A are known.

    The couplings ⟨v, A s⟩ = ⟨R_v, s⟩ are exact, so a stale vector that begins to mix with a fresh one is seen
    although it was not multiplied. The leading Ritz pair of `fresh` stays first, as it is: what older products make of
    it is a guess. The others follow in descending order.

    >>> from steppe.linalg.krylov import Krylov
    >>> from steppe.linalg.operator import Operator
    >>> from steppe.linalg.subspace import Subspace
    >>> A, e = np.array([[5.0, 0.0, 0.0], [0.0, 2.0, 1.0], [0.0, 1.0, 2.0]]), np.eye(3)  # A e₃ not known, was 2 e₃
    >>> a, rng = Operator(lambda v: A @ v, 3), np.random.default_rng(0)
    >>> known = Subspace.multiplied(a, e[:1])
    >>> joint = Joint(known, Krylov(a, e[1:2], capacity=2, against=known.rows))
    >>> joint.grow(rng)
    >>> blend(joint, e[2:], np.array([2.0]), 3)[0].round(9).tolist()
    [5.0, 3.0, 1.0]
    """
    H = fresh.projection(fresh.chain.size).H
    theta, T = np.linalg.eigh(H)
    theta, T = theta[::-1], T[:, ::-1]
    inside, common = fresh.along(stale)
    length, U = np.linalg.eigh(stale @ stale.T - inside @ inside.T)  # sin² of the angles to the fresh space
    kept = length > 0.5  # what lies mostly in it is fresh already
    scaled = (U[:, kept] / np.sqrt(length[kept])).T
    coupling = T[:, 1:].T @ (scaled @ common).T
    # What is left of s_i A₀ s_j when the parts along the fresh space, which are known, are taken out.
    across = inside @ common.T
    outer = np.diag(values) - inside @ H @ inside.T - across - across.T
    block = scaled @ outer @ scaled.T
    others, X = np.linalg.eigh(np.block([[np.diag(theta[1:]), coupling], [coupling.T, block]]))
    X = X[:, ::-1][:, : count - 1].T
    part = X[:, len(theta) - 1 :] @ scaled
    first = np.eye(1, len(theta))
    coefficients = np.vstack([first, np.pad(X[:, : len(theta) - 1], ((0, 0), (1, 0)))]) @ T.T
    coefficients[1:] -= part @ inside
    rows = fresh.combined(coefficients)
    rows[1:] += part @ stale
    return np.append(theta[:1], others[::-1])[:count], rows
