import numba
import numpy as np
import pytest
from cases.kernel_family import callable_part

from steppe.kernels import matrices as sign_sums
from steppe.kernels.matrices import ENTRIES, GROUP, fits, places, table_size
from steppe.kernels.simd import BYTES, OPTIONS, load, store, zeros

tabulate, sums = callable_part(sign_sums.tabulate), callable_part(sign_sums.sums)


@numba.njit(**OPTIONS)
def product(words, V, T, C, lanes):
    """C = X V for the signs X that `words` stand for."""
    fours, groups = words.shape
    for g in range(groups):
        k = GROUP * g * lanes
        tabulate(load(V, k), load(V, k + lanes), load(V, k + 2 * lanes), load(V, k + 3 * lanes), T, g * ENTRIES * lanes)
    zero = zeros(V)
    for r in range(fours):
        s = sums(T, words.reshape(-1), r * groups, groups, zero, zero, zero, zero)
        store(C, 4 * r * lanes, s[0])
        store(C, (4 * r + 1) * lanes, s[1])
        store(C, (4 * r + 2) * lanes, s[2])
        store(C, (4 * r + 3) * lanes, s[3])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "columns"), [(16, 4), (7, 5), (1, 1), (30, 31)])
def test_a_product_with_signs(rows, columns, dtype):
    rng, lanes = np.random.default_rng(0), BYTES // np.dtype(dtype).itemsize
    X = rng.choice([-1.0, 1.0], (rows, columns))
    if columns == GROUP:
        X = 1 - 2.0 * (np.arange(ENTRIES)[:, None] >> np.arange(GROUP) & 1)  # every entry
    words = places(X, lanes)
    V = np.zeros((GROUP * words.shape[1], lanes), dtype)
    V[:columns] = rng.integers(-9, 10, (columns, lanes))  # so that no sum is rounded
    C = np.ones((4 * len(words), lanes), dtype)
    product(words, V.reshape(-1), np.zeros(table_size(words.shape[1], lanes), dtype), C.reshape(-1), lanes)
    np.testing.assert_array_equal(C[:rows], X @ V[:columns])
    assert not C[rows:].any()


def test_only_for_signs_and_not_for_the_longest_rows():
    X = np.ones((2, 1020), np.float32)
    assert fits(X, 16)
    assert fits(-X, 16)
    assert not fits(np.ones((2, 1021), np.float32), 16)
    X[1, 3] = 0
    assert not fits(X, 16)


def test_tables_used_again_have_the_same_places():
    X = np.random.default_rng(0).choice([-1.0, 1.0], (4, 40))
    np.testing.assert_array_equal(places(X, 8, 4)[:, 4:8], places(X[:, 16:32], 8))
