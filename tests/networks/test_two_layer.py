import jax
import numpy as np
import pytest
from families import two_layer

from steppe.check import ArgumentError
from steppe.networks import TwoLayer


@pytest.mark.parametrize("bias", [True, False])
def test_curvature_against_autodiff(bias):
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


def test_initialisation_is_that_of_pytorch():
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
def test_bad_width(width):
    with pytest.raises(ArgumentError, match="width"):
        TwoLayer().init(3, width, np.random.default_rng(0))
