import jax.numpy as jnp
import numpy as np
import pytest
from families import FAMILY, two_layer
from oracles import dense_hessian, gauss_newton

import steppe
from steppe.measures import trace


@pytest.mark.parametrize("name", FAMILY)
def test_trace_and_parts_against_the_dense_hessian(name):
    p = FAMILY[name]()
    H, G = dense_hessian(p, p.w0), gauss_newton(p, p.w0)
    estimate = trace(p, p.w0)
    assert estimate.is_exact
    size = np.abs(np.diag(H)).sum() + np.trace(G)  # rounding is relative to what is added up
    np.testing.assert_allclose(estimate.value, np.trace(H), atol=1e-13 * size, rtol=0)
    np.testing.assert_allclose(estimate.parts["gauss_newton"].value, np.trace(G), atol=1e-13 * size, rtol=0)
    np.testing.assert_allclose(estimate.parts["residual"].value, np.trace(H) - np.trace(G), atol=1e-13 * size, rtol=0)


@pytest.mark.parametrize("bias", [True, False])
def test_closed_form_equals_the_generic_way(bias):
    p = two_layer(bias=bias)
    generic = steppe.Problem(lambda a, x: p.predict(a, x), p.unravel(p.w0), p.x, p.y, p.criterion)
    np.testing.assert_allclose(trace(p, p.w0).value, trace(generic, p.w0).value, rtol=1e-13)
    assert trace(p, p.w0).matvecs == 0
    assert trace(generic, p.w0).matvecs == p.w0.size


def test_piecewise_linear_nets_have_no_residual_part():
    p = two_layer()
    assert trace(p, p.w0).parts["residual"].value == 0


def test_least_squares_in_closed_form():
    """L = mean (x·w − y)²: tr ∇²L = (2/n) Σ ‖xᵢ‖²."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(7, 3))
    p = steppe.Problem(lambda w, x: x @ w, np.zeros(3), x, rng.normal(size=7), steppe.losses.mse)
    np.testing.assert_allclose(trace(p, p.w0).value, 2 / 7 * (x**2).sum(), rtol=1e-14)


def test_float32_is_close():
    p64, p32 = two_layer(), two_layer(dtype=np.float32)
    assert trace(p32, p32.w0).value == pytest.approx(trace(p64, p64.w0).value, rel=50 * float(np.finfo(np.float32).eps))


def test_law_half_of_the_loss_is_half_of_the_trace():
    p, half = two_layer(), two_layer(loss=steppe.losses.half_mse)
    np.testing.assert_allclose(trace(p, p.w0).value, 2 * trace(half, half.w0).value, rtol=1e-14)


def test_accepts_numpy_and_pytree():
    p = two_layer()
    assert trace(p, np.asarray(p.w0)) == trace(p, p.unravel(p.w0)) == trace(p, jnp.asarray(p.w0))
