import numpy as np
import pytest
from cases.kernel_family import callable_part
from hypothesis import given
from hypothesis import strategies as st

from steppe.kernels import matrices as packed
from steppe.kernels.matrices import TILE

products, outer, step_and_product, rescaling = (
    callable_part(part) for part in (packed.products, packed.outer, packed.step_and_product, packed.rescaling)
)
sizes = st.tuples(st.integers(1, 200), st.integers(1, 40))


@given(sizes)
def test_unpacking_gives_the_matrix_back(size):
    W = np.random.default_rng(0).normal(size=size)
    np.testing.assert_array_equal(packed.unpack(packed.pack(W), *size), W)


@given(sizes, st.sampled_from([np.float32, np.float64]))
def test_memory_begins_at_a_cache_line_and_rows_never_a_kilobyte_apart(size, dtype):
    array = packed.copied(np.ones(size, dtype))
    assert array.ctypes.data % 64 == 0
    assert (array == 1).all()
    bytes_apart = packed.row_stride(size[0], dtype) * np.dtype(dtype).itemsize
    assert bytes_apart % 64 == 0
    assert bytes_apart % 1024


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("m", "d", "n"), [(1, 1, 1), (64, 4, 2), (65, 5, 3), (130, 31, 10)])
def test_passes_against_numpy(m, d, n, dtype):
    rng = np.random.default_rng(1)
    W, X = rng.normal(size=(m, d)).astype(dtype), np.zeros((n + TILE, packed.padded(d, packed.ROWS)), dtype)
    X[:n, :d] = rng.normal(size=(n, d))
    U = np.zeros((n + TILE, packed.padded(m, packed.LANES) + 16), dtype)
    U[:n, :m] = rng.normal(size=(n, m))
    decay = dtype(0.9)
    tolerance = 20 * d * n * np.finfo(dtype).eps

    H = np.full_like(U, 7)
    products(packed.pack(W), X, n, H)
    np.testing.assert_allclose(H[:n, :m], X[:n, :d] @ W.T, atol=tolerance)

    G = np.full_like(packed.pack(W), 7)
    outer(U, X, n, G)
    np.testing.assert_allclose(packed.unpack(G, m, d), U[:n, :m].T @ X[:n, :d], atol=tolerance)

    P, h = packed.pack(W), np.full_like(U[0], 7)
    step_and_product(P, U[0], X[0], decay, X[n - 1], h)
    moved = decay * W - np.outer(U[0, :m], X[0, :d])
    np.testing.assert_allclose(packed.unpack(P, m, d), moved, atol=tolerance)
    np.testing.assert_allclose(h[:m], moved @ X[n - 1, :d], atol=tolerance)

    W_flat, u, x, step = packed.pack(W).ravel(), U[0, :m], X[0, :d], dtype(0.3)
    factor = rescaling(W_flat, dtype(2), decay, step, u @ W @ x, (u @ u) * (x @ x))
    np.testing.assert_allclose(factor * np.linalg.norm(decay * W - step * np.outer(u, x)), 2, rtol=tolerance)


def test_nothing_is_not_rescaled():
    assert rescaling(np.zeros(64), 2.0, 0.9, 0.1, 0.0, 0.0) == 0
