import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases.problems import FAMILY, tanh_net, two_layer
from oracles.dense_curvature import dense, matrices, problem

import steppe
from steppe import Accuracy, measures
from steppe.curvature import _traces
from steppe.measures import trace


@pytest.mark.parametrize("name", FAMILY)
def test_trace_and_parts_against_the_dense_hessian(name):
    p = problem(name)
    H, G = matrices(name).hessian, matrices(name).gauss_newton
    estimate = trace(p, p.w0)
    assert estimate.is_exact
    size = np.abs(np.diag(H)).sum() + np.trace(G)  # rounding is relative to what is added up
    np.testing.assert_allclose(estimate.value, np.trace(H), atol=1e-13 * size, rtol=0)
    np.testing.assert_allclose(estimate.parts["gauss_newton"].value, np.trace(G), atol=1e-13 * size, rtol=0)
    np.testing.assert_allclose(estimate.parts["residual"].value, np.trace(H) - np.trace(G), atol=1e-13 * size, rtol=0)


@pytest.mark.parametrize("bias", [True, False])
def test_closed_form_equals_the_generic_way(bias):
    p = two_layer(bias=bias)
    generic = steppe.Problem(lambda a, x: p.predict(a, x), p.unravel(np.asarray(p.w0)), p.x, p.y, p.loss_function)
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


@pytest.mark.parametrize("known", [True, False], ids=["gauss-newton exact", "both estimated"])
def test_estimated_traces_hold_the_truth(known, monkeypatch):
    """More parameters than products. At confidence 0.9, 40 keys, four standard deviations allowed."""
    monkeypatch.setattr(_traces, "_ENTRIES", 1e10 if known else 0)
    p = tanh_net(n=12, d=20, width=20, outputs=1)
    exact = dense(p)
    G, R = np.trace(exact.gauss_newton), np.trace(exact.residual)
    found = [trace(p, accuracy=Accuracy(0.2, 0.9, max_matvecs=200), key=key) for key in range(40)]
    gauss_newton, residual = ([e.parts[name] for e in found] for name in ("gauss_newton", "residual"))
    for estimates, truth in ((found, G + R), (gauss_newton, G), (residual, R)):
        # An exact part has no width but rounding.
        held = sum(e.lower - 1e-13 * G <= truth <= e.upper + 1e-13 * G for e in estimates)
        assert held >= 40 * 0.9 - 4 * np.sqrt(40 * 0.9 * 0.1)
    assert all(e.converged == (e.upper - e.lower <= 0.2 * abs(e.value)) for e in found)
    assert all(e.parts["gauss_newton"].is_exact == known for e in found)
    assert all(e.matvecs < p.w0.size for e in found)


def test_exactness_is_a_matter_of_products():
    p = problem("tanh-half-mse")
    assert trace(p, accuracy=Accuracy(0.05, max_matvecs=p.w0.size)).is_exact
    assert not trace(p, accuracy=Accuracy(0.05, max_matvecs=p.w0.size - 1)).is_exact


def test_a_fisher_trace_too_large_to_walk_through(monkeypatch):
    monkeypatch.setattr(_traces, "_ENTRIES", 0)
    p, G = problem("tanh-cross-entropy"), matrices("tanh-cross-entropy").gauss_newton
    estimate = measures.fisher_trace(p, p.w0)
    assert estimate.value == pytest.approx(np.trace(G), rel=0.05)


def test_parameters_of_mixed_precision():
    """The trace said to be exact was off by 1e-8: derivatives went through the narrower arrays."""
    rng = np.random.default_rng(0)
    params = {"a": rng.normal(size=(3, 4)).astype(np.float32), "b": rng.normal(size=4)}
    x, y = rng.normal(size=(6, 3)), rng.normal(size=6)

    def net(params, x):
        return jnp.tanh(x @ params["a"]) @ params["b"]

    p = steppe.Problem(net, params, x, y, steppe.losses.mse)
    wide = steppe.Problem(net, jax.tree.map(lambda a: a.astype(float), params), x, y, steppe.losses.mse)
    H = np.asarray(jax.hessian(wide.loss)(wide.w0))
    assert measures.trace(p).value == pytest.approx(np.trace(H), rel=1e-13)
