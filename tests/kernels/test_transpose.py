import numba
import numpy as np
import pytest

from steppe.kernels.simd import BYTES, OPTIONS, transpose


@numba.njit(**OPTIONS)
def turn(A, a, row_a, B, b, row_b):
    transpose(A, a, row_a, B, b, row_b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_block_and_nothing_else(dtype):
    lanes = BYTES // np.dtype(dtype).itemsize
    A, B = (
        np.random.default_rng(0).normal(size=(lanes + 1, 2 * lanes)).astype(dtype),
        np.zeros((lanes, 3 * lanes), dtype),
    )
    turn(A.reshape(-1), 2 * lanes + 3, 2 * lanes, B.reshape(-1), lanes, 3 * lanes)
    expected = np.zeros_like(B)
    expected[:, lanes : 2 * lanes] = A[1:, 3 : 3 + lanes].T
    np.testing.assert_array_equal(B, expected)
