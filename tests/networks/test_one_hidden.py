import numpy as np
import pytest

import steppe
from steppe.check import ArgumentError
from steppe.networks import OneHidden


@pytest.mark.parametrize(("d", "outputs"), [(1, None), (3, None), (2, 4)])
def test_forward_written_out(d, outputs):
    rng = np.random.default_rng(0)
    params = OneHidden().init(d, 5, rng, outputs=outputs)
    x = rng.normal(size=(6, d))
    W2 = np.atleast_2d(params["W2"])
    expected = np.array([
        [sum(W2[o, i] * max(params["W1"][i] @ row + params["b1"][i], 0.0) for i in range(5)) for o in range(len(W2))]
        for row in x
    ]) + np.atleast_1d(params["b2"])  # fmt: skip
    np.testing.assert_allclose(OneHidden()(params, x), expected if outputs else expected[:, 0], rtol=1e-13)


def test_initialisation_is_pytorchs_times_a_factor():
    """Uniform on ±1/√fan_in: 1 for the first layer of one input, 1/√m for the second."""
    params = OneHidden().init(1, 400, np.random.default_rng(0), scale=3.0)
    plain = OneHidden().init(1, 400, np.random.default_rng(0))
    for name, bound in {"W1": 1.0, "b1": 1.0, "W2": 1 / 20}.items():
        np.testing.assert_array_equal(params[name], 3.0 * plain[name])
        assert 0.97 * bound < np.abs(plain[name]).max() <= bound  # 400 uniform draws: missed with odds 0.97⁴⁰⁰ = 5e-6
    assert np.abs(plain["b2"]) <= 1 / 20


def test_a_problem_takes_it():
    rng = np.random.default_rng(1)
    params = OneHidden().init(2, 3, rng, outputs=2)
    p = steppe.Problem(OneHidden(), params, rng.normal(size=(4, 2)), np.zeros((4, 2)), steppe.losses.half_mse)
    assert p.w0.size == 3 * 2 + 3 + 2 * 3 + 2
    with pytest.raises(ArgumentError, match="scale must be"):
        OneHidden().init(2, 3, rng, scale=0.0)
