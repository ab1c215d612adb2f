import numpy as np
import pytest
from cases.kernel_family import callable_part

from steppe.kernels import matrices as own

matmul, matmul_transposed = callable_part(own.matmul), callable_part(own.matmul_transposed)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "inner", "columns"), [(4, 1, 16), (8, 5, 48), (20, 33, 16)])
def test_against_numpy(rows, inner, columns, dtype):
    """Matrices inside larger arrays, A by rows and by columns; nothing else is written."""
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(rows, inner)).astype(dtype), rng.normal(size=(inner + 1, columns + 3)).astype(dtype)
    tolerance = 4 * inner * np.finfo(dtype).eps * np.abs(A).max() * np.abs(B).max()
    for flat, strides in ((A.ravel(), (inner, 1)), (np.ascontiguousarray(A.T).ravel(), (1, rows))):
        C = np.full((rows + 2, columns + 5), 7, dtype)
        matmul(flat, 0, *strides, rows, inner, B.ravel(), B.shape[1], B.shape[1], columns, C.ravel(), 2, C.shape[1])
        expected = np.full_like(C, 7).ravel()
        expected[2:][: rows * C.shape[1]].reshape(rows, -1)[:, :columns] = A @ B[1:, :columns]
        np.testing.assert_allclose(C.ravel(), expected, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "columns", "inner"), [(2, 2, 16), (12, 6, 48), (20, 10, 16)])
def test_transposed_against_numpy(rows, columns, inner, dtype):
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(rows, inner + 1)).astype(dtype), rng.normal(size=(columns, inner + 2)).astype(dtype)
    C = np.full((rows, columns + 3), 7, dtype)
    matmul_transposed(A.ravel(), A.shape[1], rows, B.ravel(), B.shape[1], columns, inner, C.reshape(-1), C.shape[1])
    tolerance = 4 * inner * np.finfo(dtype).eps * np.abs(A).max() * np.abs(B).max()
    np.testing.assert_allclose(C[:, :columns], A[:, :inner] @ B[:, :inner].T, atol=tolerance)
    assert (C[:, columns:] == 7).all()
