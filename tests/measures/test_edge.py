"""The edge ratio of a step: against dense matrices, and where the loss stops falling."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from cases.problems import least_squares, tanh_net, two_layer

import steppe
from steppe import curvature
from steppe.check import ArgumentError
from steppe.measures import edge_ratio


def test_against_the_dense_hessian():
    p = tanh_net()
    H, g = np.asarray(curvature.hessian(p).dense()), np.asarray(jax.grad(p.loss)(p.w0))
    step = np.random.default_rng(0).normal(size=g.size)
    found = edge_ratio(p, step=step)
    assert found.value == pytest.approx(step @ H @ step / -(g @ step), rel=1e-10)
    assert found.matvecs == 1
    assert edge_ratio(p, p.w0).value == pytest.approx(g @ H @ g / (g @ g), rel=1e-10)


@pytest.mark.parametrize("transformation", [optax.adam(0.05), optax.sgd(0.1, momentum=0.9), optax.adagrad(0.1)])
def test_the_update_of_an_optax_loop(transformation):
    """On a quadratic the loss falls exactly while the ratio is below 2."""
    p = least_squares()
    w, state, fell = p.w0, transformation.init(p.w0), []
    for _ in range(10):
        update, state = transformation.update(jax.grad(p.loss)(w), state, w)
        ratio = edge_ratio(p, w, step=update).value
        change = float(p.loss(w + update) - p.loss(w))
        # L(w + Δ) − L(w) = gᵀΔ (1 − ratio/2)
        assert change == pytest.approx(float(jax.grad(p.loss)(w) @ update) * (1 - ratio / 2), abs=1e-12)
        fell.append(change < 0)
        w = w + update
    assert any(fell)


def test_a_pytree_is_a_step():
    p = two_layer()
    flat = -0.1 * np.asarray(jax.grad(p.loss)(p.w0))
    assert edge_ratio(p, step=p.unravel(jnp.asarray(flat))) == edge_ratio(p, step=flat)
    on_a_batch = p.on(p.x[:3], p.y[:3])
    assert edge_ratio(on_a_batch, step=flat).value != pytest.approx(edge_ratio(p, step=flat).value)


def test_no_step_has_no_ratio():
    p = two_layer()
    found = edge_ratio(p, step=np.zeros(p.w0.size))
    assert np.isnan(found.value)
    assert not found.converged


@pytest.mark.parametrize("bad", [np.ones(3), "step", [1.0, None]])
def test_a_step_of_another_problem_is_refused(bad):
    with pytest.raises(ArgumentError, match=r"step must be a step of .* parameters.*Pass the update"):
        edge_ratio(two_layer(), step=bad)


def test_a_step_that_is_not_finite_is_refused():
    p = two_layer()
    with pytest.raises(ArgumentError, match="step must be finite"):
        edge_ratio(p, step=np.full(p.w0.size, np.nan))
    assert steppe.measures.edge_ratio is edge_ratio


def test_a_torch_problem():
    """L = ½(4w₁² + w₂²) along a step, by products of PyTorch."""
    torch = pytest.importorskip("torch.autograd") and pytest.importorskip("torch")
    import steppe.torch

    model = torch.nn.Linear(2, 1, bias=False).double()
    model.weight.data = torch.tensor([[1.0, -1.0]], dtype=torch.float64)
    x, y = torch.tensor([[2.0, 0.0], [0.0, 1.0]], dtype=torch.float64), torch.zeros(2, 1, dtype=torch.float64)
    p = steppe.torch.Problem(model, (x, y), lambda f, y: 0.5 * ((f - y) ** 2).sum(), weight=lambda y: 1.0)
    step, g, H = np.array([0.3, 0.1]), np.array([4.0, -1.0]), np.diag([4.0, 1.0])
    assert edge_ratio(p, step=-step).value == pytest.approx(step @ H @ step / (g @ step))
