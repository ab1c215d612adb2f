import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steppe.dynamics.kernels import packed

sizes = st.tuples(st.integers(1, 200), st.integers(1, 40))


@given(sizes)
def test_unpacking_gives_the_matrix_back(size):
    W = np.random.default_rng(0).normal(size=size)
    np.testing.assert_array_equal(packed.unpack(packed.pack(W), *size), W)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("m", "d", "n"), [(1, 1, 1), (64, 4, 2), (65, 5, 3), (130, 31, 10)])
def test_passes_against_numpy(m, d, n, dtype):
    rng = np.random.default_rng(1)
    W, X = rng.normal(size=(m, d)).astype(dtype), np.zeros((n, packed.padded(d, packed.ROWS)), dtype)
    X[:, :d] = rng.normal(size=(n, d))
    U = np.zeros((n, packed.padded(m, packed.LANES)), dtype)
    U[:, :m] = rng.normal(size=(n, m))
    index, decay = np.arange(n, dtype=np.int32)[::-1].copy(), dtype(0.9)
    tolerance = 20 * d * n * np.finfo(dtype).eps

    H = np.full_like(U, 7)
    packed.products(packed.pack(W), X, index, H)
    np.testing.assert_allclose(H[:, :m], X[index][:, :d] @ W.T, atol=tolerance)

    P = packed.pack(W)
    packed.rank_update(P, U, X, index, decay)
    expected = decay * W - U[:, :m].T @ X[index][:, :d]
    np.testing.assert_allclose(packed.unpack(P, m, d), expected, atol=tolerance)

    P, h = packed.pack(W), np.full_like(U[0], 7)
    packed.step_and_product(P, U[0], X[0], decay, X[-1], h)
    moved = decay * W - np.outer(U[0, :m], X[0, :d])
    np.testing.assert_allclose(packed.unpack(P, m, d), moved, atol=tolerance)
    np.testing.assert_allclose(h[:m], moved @ X[-1, :d], atol=tolerance)
