"""`xor`: corners of the hypercube with the product of the first two coordinates as label."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steppe.check import ArgumentError
from steppe.data import xor


@given(st.integers(2, 40), st.integers(1, 50), st.integers(0, 20), st.integers(0, 2**32))
def test_points_are_corners_with_their_label(d, n, test, key):
    data = xor(d, n, test=test, key=key)
    assert data.x.shape == (n, d)
    assert data.x_test.shape == (test, d)
    for x, y in ((data.x, data.y), (data.x_test, data.y_test)):
        assert set(np.unique(x)) <= {-1.0, 1.0}
        np.testing.assert_array_equal(y, x[:, 0] * x[:, 1])


@pytest.mark.parametrize(("d", "n"), [(2, 4), (5, 32), (10, 700), (21, 3000), (40, 500)])
def test_distinct_without_replacement(d, n):
    assert len(np.unique(xor(d, n, replace=False).x, axis=0)) == n


def test_uniform():
    """Each coordinate and each product of two is a fair coin: within four standard errors of 0."""
    n = 20_000
    x = xor(5, n, key=1).x
    assert (np.abs(x.mean(0)) < 4 / np.sqrt(n)).all()
    assert (np.abs((x.T @ x / n)[np.triu_indices(5, 1)]) < 4 / np.sqrt(n)).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"d": 1, "n": 3}, "d must be a whole number ≥ 2; got 1"),
        ({"d": 3, "n": 0}, "n must be a whole number ≥ 1"),
        ({"d": 3, "n": -4}, "n must be a whole number ≥ 1"),
        ({"d": 3, "n": 4, "test": -1}, "test must be a whole number ≥ 0"),
        ({"d": 3, "n": 9, "replace": False}, "n must be at most 2\\^d = 8 without replacement; got 9"),
        ({"d": 2.5, "n": 4}, "d must be a whole number"),
        ({"d": float("nan"), "n": 4}, "d must be a whole number"),
    ],
)
def test_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        xor(**arguments)
