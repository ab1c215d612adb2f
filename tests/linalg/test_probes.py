import numpy as np
import pytest

from steppe.linalg import gaussian, rademacher, sphere

N = 200_000


def test_rademacher_is_plus_or_minus_one_with_equal_probability():
    z = rademacher(N, np.random.default_rng(0))
    assert z.dtype == np.float64
    assert set(np.unique(z)) == {-1.0, 1.0}
    assert abs(z.mean()) <= 4 / np.sqrt(N)
    # Neighbours agree half of the time: the signs are independent.
    assert abs((z[1:] * z[:-1]).mean()) <= 4 / np.sqrt(N)


def test_successive_vectors_differ():
    rng = np.random.default_rng(0)
    assert not np.array_equal(rademacher(100, rng), rademacher(100, rng))


@pytest.mark.parametrize("probe", [rademacher, gaussian, sphere])
def test_second_moment_is_the_identity(probe):
    rng, p, n = np.random.default_rng(1), 5, 20_000
    z = np.stack([probe(p, rng) for _ in range(n)])
    # The entries of zzᵀ have variance at most 3.
    assert np.abs(z.T @ z / n - np.eye(p)).max() <= 4 * np.sqrt(3 / n)


def test_sphere_has_radius_root_p():
    assert np.linalg.norm(sphere(50, np.random.default_rng(0))) == pytest.approx(np.sqrt(50), rel=1e-14)
