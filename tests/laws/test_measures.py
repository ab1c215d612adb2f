"""Laws of every measure on every problem, against the dense Hessian."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from families import FAMILY, tanh_net, two_layer
from oracles import dense_hessian, gauss_newton

import steppe
from steppe import measures


@pytest.fixture(scope="module", params=FAMILY)
def case(request):
    """A problem with its dense Hessian and the eigenvalues of it, rising."""
    p = FAMILY[request.param]()
    H = dense_hessian(p, p.w0)
    return p, H, np.linalg.eigvalsh(H)


def covers(estimate, truth):
    return estimate.lower <= truth <= estimate.upper


def test_sharpness_and_spectral_norm(case):
    p, _, eigenvalues = case
    sharpness, norm = measures.sharpness(p, p.w0, key=1), measures.spectral_norm(p, p.w0, key=1)
    assert covers(sharpness, eigenvalues[-1])
    assert covers(norm, np.abs(eigenvalues).max())
    for estimate in (sharpness, norm):
        width = estimate.upper - estimate.lower
        assert not estimate.converged or width <= 1e-3 * abs(estimate.value) * (1 + 1e-9)


def test_top_eigenvalues_and_trace(case):
    p, H, eigenvalues = case
    k = min(3, p.w0.size)
    for found, truth in zip(measures.top_eigenvalues(p, p.w0, k=k, key=0), eigenvalues[::-1][:k], strict=True):
        assert covers(found, truth)
    trace = measures.trace(p, p.w0)
    size = np.abs(np.diag(H)).sum()  # rounding is relative to what is added up
    assert trace.value == pytest.approx(eigenvalues.sum(), abs=1e-12 * size)
    assert eigenvalues[-1] >= trace.value / p.w0.size


@pytest.mark.parametrize("name", ["hessian", "gauss_newton", "residual", "fisher", "empirical_fisher"])
def test_operators_are_symmetric_and_equal_their_dense_twins(case, name):
    p, H, _ = case
    operator = getattr(measures.operators, name)(p, p.w0)
    dense = np.asarray(operator.dense())
    scale = np.abs(dense).max() + np.abs(H).max()
    v = np.random.default_rng(0).normal(size=p.w0.size)
    np.testing.assert_allclose(np.asarray(operator(v)), dense @ v, atol=1e-12 * scale * np.abs(v).sum(), rtol=0)
    np.testing.assert_allclose(dense, dense.T, atol=1e-12 * scale, rtol=0)
    if name == "hessian":
        np.testing.assert_allclose(dense, H, atol=1e-12 * scale, rtol=0)
    if name == "gauss_newton":
        np.testing.assert_allclose(dense, gauss_newton(p, p.w0), atol=1e-12 * scale, rtol=0)


def test_gauss_newton_and_residual_make_the_hessian(case):
    p, H, _ = case
    parts = measures.operators.gauss_newton(p, p.w0).dense() + measures.operators.residual(p, p.w0).dense()
    np.testing.assert_allclose(parts, H, atol=1e-12 * np.abs(H).max(), rtol=0)


def test_fisher_is_gauss_newton_for_cross_entropy():
    p = tanh_net(loss=steppe.losses.cross_entropy)
    F, G = measures.operators.fisher(p, p.w0).dense(), gauss_newton(p, p.w0)
    np.testing.assert_allclose(F, G, atol=1e-12 * np.abs(G).max(), rtol=0)
    assert measures.fisher_trace(p, p.w0).value == pytest.approx(np.trace(G), rel=1e-10)
    assert covers(measures.fisher_sharpness(p, p.w0), np.linalg.eigvalsh(G)[-1])


def test_density_has_the_mean_of_the_eigenvalues(case):
    p, _, eigenvalues = case
    found = measures.density(p, p.w0, probes=64, steps=16, key=2)
    # The variance of zᵀHz/p over sphere or sign probes is at most 2 Σ λ²/p².
    error = np.sqrt(2 * (eigenvalues**2).sum() / p.w0.size**2 / 64)
    assert abs(found.mean() - eigenvalues.mean()) <= 4 * error + 1e-12 * np.abs(eigenvalues).max()


def test_rescaling_a_neuron_changes_no_adaptive_sharpness():
    p = two_layer()
    params = p.unravel(p.w0)
    s = jnp.exp(jnp.linspace(-1, 1, 7))
    rescaled = {"W1": params["W1"] * s[:, None], "b1": params["b1"] * s, "W2": params["W2"] / s}
    for kind in ("average", "worst"):
        before, after = (
            measures.adaptive_sharpness(p, p.vector(w), kind=kind, radius=0.05, key=3) for w in (params, rescaled)
        )
        assert after.value == pytest.approx(before.value, rel=1e-9)


def test_random_directions_of_a_quadratic_in_closed_form():
    """E L(w + σg) − L(w) = ½σ² tr ∇²L exactly for least squares."""
    p = FAMILY["least-squares"]()
    found = measures.random_direction_sharpness(p, p.w0, key=0)
    sigma = found_sigma(measures.random_direction_sharpness)
    assert covers(found, 0.5 * sigma**2 * measures.trace(p, p.w0).value)


def found_sigma(measure):
    import inspect

    return inspect.signature(measure).parameters["sigma"].default


def test_distance_and_norm_agree():
    p = tanh_net()
    zero = jnp.zeros_like(p.w0)
    assert measures.distance(p, p.w0).value == 0
    assert measures.distance(p, p.w0, to=zero).value == pytest.approx(measures.norm(p, p.w0).value, rel=1e-14)


def test_a_tracker_follows_a_trajectory_with_few_products():
    p = tanh_net(n=20, width=8)
    tracker = measures.Tracker()
    run = steppe.run(
        p, steppe.dynamics.GD(0.05), stop=steppe.until.steps(60), when=steppe.when.every(steps=5),
        record={"sharpness": tracker, "w": lambda p, w: w},
    )  # fmt: skip
    hessian = eqx.filter_jit(jax.hessian(p.loss))
    truth = np.array([np.linalg.eigvalsh(hessian(jnp.asarray(w)))[-1] for w in run.records["w"]])
    np.testing.assert_allclose(run.records["sharpness"], truth, rtol=1e-3)  # what the tracker promises


def test_kinks_are_found_and_sharpness_says_so():
    p = two_layer(d=4, n=5, width=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        measures.sharpness(p, p.w0)
    params = {name: np.array(a) for name, a in p.unravel(p.w0).items()}
    params["b1"][1] = -params["W1"][1] @ np.asarray(p.x)[2]  # neuron 1 switches exactly at example 2
    w = p.vector(params)
    assert measures.kinks(p, w).matter >= 1
    with pytest.warns(measures.KinkWarning, match="kink"):
        measures.sharpness(p, w)
