"""The small matrices agree with the long vectors."""

import numpy as np
import pytest
from cases.planted import plant

from steppe.linalg import Operator
from steppe.linalg._lanczos import Krylov
from steppe.linalg._subspace import Joint, Subspace, blend

FAMILIES = {
    "spread": np.linspace(-1, 2, 12),
    "rank deficient": np.array([3.0, 2.0, 1.0] + [0.0] * 9),
    "clustered": np.array([1.0] * 4 + [1.001] * 4 + [-5.0] * 4),
}


def joint_of(spectrum, k, products, seed):
    A, rng = plant(spectrum, seed), np.random.default_rng(seed)
    a = Operator(lambda v: A @ v, len(A))
    known = Subspace.multiplied(a, rng.standard_normal((k, len(A))))
    first = rng.standard_normal(len(A))
    first -= (known.rows @ first) @ known.rows
    chain = Krylov(a, first[None] / np.linalg.norm(first), capacity=len(A) - k, against=known.rows)
    joint = Joint(known, chain)
    for _ in range(products):
        joint.grow(rng)
    return A, joint


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("k", "products"), [(1, 1), (2, 3), (3, 5), (3, 9)])
@pytest.mark.parametrize("seed", range(3))
def test_a_projection_is_that_of_the_long_vectors(family, k, products, seed):
    """Also where the chain has met an invariant subspace, and where it fills the space (3 and 9 of 12)."""
    A, joint = joint_of(FAMILIES[family], k, products, seed)
    scale = np.abs(FAMILIES[family]).max()
    for n in range(products + 1):
        long, small = joint.known.joined(joint.chain, n), joint.projection(n)
        V = long.rows
        np.testing.assert_allclose(small.H, V @ A @ V.T, atol=1e-13 * scale)
        R = A @ V.T - V.T @ small.H
        np.testing.assert_allclose(small.gram, R.T @ R, atol=1e-13 * scale**2)
        np.testing.assert_allclose(long.gram, R.T @ R, atol=1e-13 * scale**2)
        ritz = small.ritz(2 if len(V) > 1 else 1)
        np.testing.assert_allclose(ritz.values, np.linalg.eigvalsh(small.H)[::-1][: len(ritz.values)], atol=1e-13)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("count", [1, 3, 9])
@pytest.mark.parametrize("seed", range(4))
def test_a_blend_is_the_ritz_problem_with_the_products_that_are_known(family, count, seed):
    A, joint = joint_of(FAMILIES[family], 2, 3, seed)
    rng = np.random.default_rng(seed + 100)
    stale, old = np.linalg.qr(rng.standard_normal((len(A), 3)))[0].T, rng.standard_normal(3)
    values, rows = blend(joint, stale, old, count)
    full = joint.known.joined(joint.chain, 3).ritz(5)
    outside = stale - (stale @ full.rows.T) @ full.rows
    U, sizes, _ = np.linalg.svd(outside, full_matrices=False)
    kept = sizes**2 > 0.5
    S = (U[:, kept] / sizes[kept]).T @ outside
    V = np.vstack([full.rows[1:], S])
    # A on the span of all rows but the first. For two rows outside only the earlier values are known: with the known
    # parts of s_i A s_j they must give old_i δ_ij again.
    inside = stale @ full.rows.T
    across = inside @ full.rows @ A @ outside.T
    missing = np.diag(old) - inside @ full.H @ inside.T - across - across.T
    H, T = V @ A @ V.T, (U[:, kept] / sizes[kept]).T
    H[4:, 4:] = T @ missing @ T.T
    if kept.all():
        whole = np.block([[full.H, full.rows @ A @ S.T], [S @ A @ full.rows.T, H[4:, 4:]]])
        along = np.hstack([inside, stale @ S.T])
        np.testing.assert_allclose(along @ whole @ along.T, np.diag(old), atol=1e-12)
    expected = np.append(full.values[0], np.linalg.eigvalsh(H)[::-1])[:count]
    np.testing.assert_allclose(values, expected, atol=1e-12)
    np.testing.assert_allclose(rows @ rows.T, np.eye(len(rows)), atol=1e-12)
    assert abs(rows[0] @ full.rows[0]) == pytest.approx(1.0, abs=1e-12)
    for value, row in zip(values[1:], rows[1:], strict=True):
        x = V @ row
        np.testing.assert_allclose(H @ x, value * x, atol=1e-11)
