import math

import numpy as np
import pytest

from steppe.kernels.elementary import softplus
from steppe.kernels.simd import kernel


@kernel
def evaluate(h, values, slopes):
    for j in range(len(h)):
        values[j], slopes[j] = softplus(h[j])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softplus_and_its_slope_to_a_few_units_in_the_last_place(dtype):
    h = np.concatenate([np.linspace(-60, 60, 20_001), np.linspace(-1, 1, 5_001), [0.0, -1e-30, 1e-30]]).astype(dtype)
    values, slopes = np.empty_like(h), np.empty_like(h)
    evaluate(h, values, slopes)
    wide = h.astype(float)
    expected = np.maximum(wide, 0) + np.log1p(np.exp(-np.abs(wide)))
    np.testing.assert_allclose(values, expected, rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_allclose(slopes, 1 / (1 + np.exp(-wide)), rtol=4 * np.finfo(dtype).eps)
    # The plain form, which documents it, says the same.
    np.testing.assert_allclose(
        np.array([softplus(float(v)) for v in h[::1000]]).T, [values[::1000], slopes[::1000]], rtol=1e-6
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_far_out_and_not_a_number(dtype):
    h = np.array([-1e30, 1e30, -math.inf, math.inf, math.nan], dtype)
    values, slopes = np.empty_like(h), np.empty_like(h)
    evaluate(h, values, slopes)
    np.testing.assert_allclose(values, [0, h[1], 0, math.inf, math.nan], atol=1e-37)
    np.testing.assert_allclose(slopes, [0, 1, 0, 1, math.nan], atol=1e-37)
