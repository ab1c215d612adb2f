"""`TwoLayer` and `OneHidden`: predictions and curvature written out, and PyTorch's initial distributions."""

import jax
import numpy as np
import pytest
from cases.problems import one_hidden, two_layer

from steppe.check import ArgumentError
from steppe.networks import OneHidden, TwoLayer


@pytest.mark.parametrize("bias", [True, False])
def test_curvature_of_two_layers_against_autodiff(bias):
    """‖∇f‖² and Δf of each example, from the dense gradient and Hessian of its output."""
    p = two_layer(bias=bias)
    norms, laplacians = p.predict.curvature(p.unravel(p.w0), p.x)

    @jax.jit
    def derivatives(w, x):
        def f(w):
            return p.predict(p.unravel(w), x[None])[0]

        return jax.grad(f)(w), jax.hessian(f)(w)

    for i in range(len(p)):
        g, H = derivatives(p.w0, p.x[i])
        np.testing.assert_allclose(norms[i], (g**2).sum(), rtol=1e-13)
        np.testing.assert_allclose(laplacians[i], np.trace(H), atol=1e-13)


def test_initial_weights_of_two_layers():
    """Uniform on ±1/√fan_in: the right range, and the right variance within four standard errors."""
    params = TwoLayer().init(30, 500, np.random.default_rng(0), np.float64)
    assert {k: v.shape for k, v in params.items()} == {"W1": (500, 30), "b1": (500,), "W2": (500,)}
    for name, fan_in in (("W1", 30), ("b1", 30), ("W2", 500)):
        values = params[name].ravel()
        assert np.abs(values).max() <= 1 / np.sqrt(fan_in)
        # The variance of a squared uniform on ±a is a⁴(1/5 − 1/9).
        error = np.sqrt((1 / 5 - 1 / 9) / values.size) / fan_in
        assert abs((values**2).mean() - 1 / (3 * fan_in)) < 4 * error


@pytest.mark.parametrize("width", [0, -1, 2.5])
def test_bad_width_is_refused(width):
    with pytest.raises(ArgumentError, match="width"):
        TwoLayer().init(3, width, np.random.default_rng(0))


@pytest.mark.parametrize(("d", "outputs"), [(1, None), (3, None), (2, 4)])
def test_one_hidden_layer_written_out(d, outputs):
    rng = np.random.default_rng(0)
    params = OneHidden().init(d, 5, rng, outputs=outputs)
    x = rng.normal(size=(6, d))
    W2 = np.atleast_2d(params["W2"])
    expected = np.array([
        [sum(W2[o, i] * max(params["W1"][i] @ row + params["b1"][i], 0.0) for i in range(5)) for o in range(len(W2))]
        for row in x
    ]) + np.atleast_1d(params["b2"])  # fmt: skip
    np.testing.assert_allclose(OneHidden()(params, x), expected if outputs else expected[:, 0], rtol=1e-13)


def test_initial_weights_of_one_hidden_layer():
    """Uniform on ±1/√fan_in: 1 for the first layer of one input, 1/√m for the second."""
    params = OneHidden().init(1, 400, np.random.default_rng(0), scale=3.0)
    plain = OneHidden().init(1, 400, np.random.default_rng(0))
    for name, bound in {"W1": 1.0, "b1": 1.0, "W2": 1 / 20}.items():
        np.testing.assert_array_equal(params[name], 3.0 * plain[name])
        assert 0.97 * bound < np.abs(plain[name]).max() <= bound  # 400 uniform draws: missed with odds 0.97⁴⁰⁰ = 5e-6
    assert np.abs(plain["b2"]) <= 1 / 20


def test_a_problem_of_two_outputs():
    assert one_hidden(outputs=2).w0.size == 3 * 2 + 3 + 2 * 3 + 2
    with pytest.raises(ArgumentError, match="scale must be"):
        OneHidden().init(2, 3, np.random.default_rng(0), scale=0.0)
