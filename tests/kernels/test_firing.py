import numpy as np
import pytest
from cases.kernel_family import callable_part

from steppe.kernels import matrices as firing

list_firing, forward, backward = (callable_part(p) for p in (firing.list_firing, firing.forward, firing.backward))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 9])
def test_passes_against_numpy(count, dtype):
    """Every remainder of the fours; the other rows, the row of zeros and what lies between rows stay what they are."""
    rng = np.random.default_rng(count)
    width, columns, stride = 9, 32, 48
    V = rng.normal(size=(width + 1, stride)).astype(dtype)
    V[width] = 0
    a = np.zeros(width, dtype)
    a[rng.permutation(width)[:count]] = rng.normal(size=count)
    rows, neurons, shares, found = (np.zeros(width + 4, kind) for kind in (int, int, dtype, dtype))
    assert list_firing(a, np.zeros_like(a), width, stride, rows, neurons) == count
    live = neurons[:count]
    np.testing.assert_array_equal(live, np.flatnonzero(a))
    np.testing.assert_array_equal(rows[:count], live * stride)
    rows[count : count + 4] = width * stride
    shares[:count] = a[live]
    # Sums of at most 32 products of numbers around 1.
    tolerance = 4 * 32 * np.finfo(dtype).eps

    z, delta = np.full(columns, 7, dtype), rng.normal(size=columns).astype(dtype)
    forward(V.ravel(), rows, shares, count, columns, z)
    np.testing.assert_allclose(z, a @ V[:width, :columns], atol=tolerance)

    before = V.copy()
    backward(V.ravel(), rows, shares, False, count, columns, delta, found)
    np.testing.assert_array_equal(V, before)
    products = found[:count].copy()
    np.testing.assert_allclose(products, V[live, :columns] @ delta, atol=tolerance)
    backward(V.ravel(), rows, shares, True, count, columns, delta, found)
    np.testing.assert_array_equal(found[:count], products)
    before[:width, :columns] -= np.outer(a, delta)
    np.testing.assert_allclose(V, before, atol=tolerance)
    assert (V[width] == 0).all()


def test_a_slope_without_a_value_fires():
    """A neuron at its kink has a derivative if σ′(0) is not 0."""
    rows, neurons = np.zeros(8, int), np.zeros(8, int)
    assert list_firing(np.zeros(3), np.array([0.0, 1.0, 0.0]), 3, 16, rows, neurons) == 1
    assert neurons[0] == 1
