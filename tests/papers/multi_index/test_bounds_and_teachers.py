"""Lower bounds against certified minima and where they are attained; Theorem 4's networks by autodiff."""

import jax
import numpy as np
import pytest

import steppe
from steppe.activations import Homogeneous, leaky, quadratic, rectifier, relu_power
from steppe.check import ArgumentError
from steppe.data import multi_index, orthonormal
from steppe.data.links import Linear, SumOfSingleIndex
from steppe.flattening import features, flattest_interpolator
from steppe.networks import TwoLayer
from steppe.papers.multi_index.theory import (
    copies,
    correlated,
    from_least_norm,
    least_norm,
    least_population_loss,
    patched,
    pointwise,
    population_loss,
    product_mean,
    spoiled,
    within,
)
from steppe.papers.wen2023.theory.bounds import two_layer_bias, two_layer_no_bias

FAMILY = [rectifier, leaky(0.1), quadratic, relu_power(3)]


@pytest.mark.parametrize("sigma", FAMILY, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_bounds_are_below_the_certified_minimum(sigma, seed):
    rng = np.random.default_rng(seed)
    x, y, W = rng.normal(size=(8, 5)), rng.normal(size=8), within(24, np.eye(5), key=rng)
    f = features(W, x, sigma)
    best = flattest_interpolator(f.phi, y, f.q, f.p)
    a = least_norm(f.phi, y)
    assert np.linalg.norm(f.phi @ a - y) <= 1e-10 * np.linalg.norm(y)
    assert 0 < from_least_norm(f, y) <= best.flatness * (1 + 1e-12)
    assert from_least_norm(f, y, a=a) == pytest.approx(from_least_norm(f, y), rel=1e-12)
    # The dual at the best multiple of (ΦΦᵀ)⁻¹y, by search.
    multiplier = np.linalg.solve(f.phi @ f.phi.T, y)
    s = np.abs(f.phi.T @ multiplier)
    if f.p == 1:
        t = np.min(f.q / s)
        dual = t * (y @ multiplier)
    else:
        grid = np.geomspace(1e-3, 1e6, 20_001)[:, None]
        z = (grid * s / (f.p * f.q)) ** (1 / (f.p - 1))
        dual = np.max(grid[:, 0] * (y @ multiplier) - np.sum(grid * s * z - f.q * z**f.p, axis=1))
    # The grid has steps of 1e-3, and the top is flat.
    assert from_least_norm(f, y) == pytest.approx(dual, rel=1e-5)
    assert pointwise(x, y, 24, sigma) <= best.lower


@pytest.mark.parametrize("sigma", [*FAMILY, Homogeneous(0.5, 2.0, 2)], ids=str)
@pytest.mark.parametrize("m", [1, 7])
def test_one_example_attains_the_pointwise_bound(sigma, m):
    x, y = np.array([[1.0, 2.0, -2.0]]), np.array([1.5])
    # Along the example on the side of the smaller slope, balanced over all neurons.
    small = min((1, sigma.positive), (-1, sigma.negative), key=lambda side: abs(side[1]) or np.inf)[0]
    f = features(np.repeat(small * x / 3, m, axis=0), x, sigma)
    assert flattest_interpolator(f.phi, y, f.q, f.p).flatness == pytest.approx(pointwise(x, y, m, sigma), rel=1e-7)


def test_for_relu_it_is_the_bound_of_wen2023():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6, 3)), rng.normal(size=6)
    assert pointwise(x, y, 10, rectifier) == pytest.approx(two_layer_no_bias(x, y), rel=1e-14)
    assert pointwise(x, y, 10, rectifier, bias=True) == pytest.approx(two_layer_bias(x, y), rel=1e-14)


@pytest.mark.parametrize("sigma", [rectifier, quadratic], ids=str)
def test_theorem_4_by_autodiff(sigma):
    """The network interpolates, equals the link, and after rescaling has tr ∇²L = Σ q|a|^p."""
    link, U = SumOfSingleIndex(sigma, (1.0, -0.5)), orthonormal(2, 3, key=0)
    x, y, *_ = multi_index(link, U, 7, key=1)
    W, a = copies(link, U, 6)
    assert population_loss(W, a, sigma, link, U) == pytest.approx(0.0, abs=1e-13)
    f = features(W, x, sigma)
    c, h = sigma.degree, x @ W.T
    A, B = np.mean(sigma(h) ** 2, axis=0), np.mean(sigma.slope(h) ** 2 * np.sum(x**2, axis=1)[:, None], axis=0)
    beta = (a**2 * B / (c * A)) ** (1 / (2 * c + 2))
    params = {"W1": W * beta[:, None], "W2": a * beta**-c}
    problem = steppe.Problem(TwoLayer(bias=False, activation=sigma.activation), params, x, y, steppe.losses.mse)
    assert float(problem.loss(problem.w0)) <= 1e-24
    trace = float(np.trace(jax.jit(jax.hessian(problem.loss))(problem.w0)))
    assert trace == pytest.approx(float(f.q @ np.abs(a) ** f.p), rel=1e-9)
    assert trace >= pointwise(x, y, 6, sigma)


def test_patched_fits_the_residuals():
    sigma = quadratic
    link, U = SumOfSingleIndex(sigma, (1.0, 1.0)), orthonormal(2, 6, key=0)
    x, y, *_ = multi_index(link, U, 10, noise=0.1, key=1)
    student, extra = copies(link, U, 8), within(20, np.eye(6), key=2)
    W, a = patched(student, extra, x, y, sigma)
    np.testing.assert_allclose(features(W, x, sigma).phi @ a, y, atol=1e-10)
    np.testing.assert_array_equal(a[:8], student.a)
    with pytest.raises(ArgumentError, match="extra must be inner weights"):
        patched(student, extra[:3], x, y, sigma)
    with pytest.raises(ArgumentError, match="m must be a multiple"):
        copies(link, U, 7)


@pytest.mark.parametrize("sigma", FAMILY[:3], ids=str)
def test_least_population_loss(sigma):
    rng = np.random.default_rng(0)
    link, U = SumOfSingleIndex(sigma, (1.0, 0.3)), orthonormal(2, 5, key=0)
    W = correlated(6, U, 0.4, key=1)
    least = least_population_loss(W, sigma, link, U, noise=0.2)
    k = product_mean(sigma, sigma, W, U) @ np.array([1.0, 0.3])
    best = np.linalg.solve(product_mean(sigma, sigma, W, W), k)
    assert least == pytest.approx(population_loss(W, best, sigma, link, U, noise=0.2), rel=1e-9)
    for _ in range(5):
        assert population_loss(W, best + 0.1 * rng.normal(size=6), sigma, link, U, noise=0.2) > least
    # The network that equals the link leaves the noise, however often its neurons are repeated.
    assert least_population_loss(np.tile(U, (2, 1)), sigma, link, U, noise=0.2) == pytest.approx(0.04, abs=1e-10)


def test_orthogonal_inner_weights_cost_the_variance():
    """Example 1: E(f − g)² = Var g + Var f + (E f − E g)² where f and g are independent."""
    link, U = Linear((2.0,)), np.eye(1, 4)
    assert least_population_loss([[0.0, 1.0, 0.0, 0.0]], rectifier, link, U) == pytest.approx(4.0, rel=1e-12)


@pytest.mark.parametrize("sigma", [rectifier, quadratic], ids=str)
def test_spoiled_interpolators(sigma):
    """Same outputs on the examples, the given flatness, a larger loss; without a kernel nothing changes."""
    link, U = SumOfSingleIndex(sigma), orthonormal(1, 6, key=0)
    x, y, *_ = multi_index(link, U, 8, key=1)
    W = np.vstack([U, within(29, np.eye(6), key=2)])
    f = features(W, x, sigma)
    best = flattest_interpolator(f.phi, y, f.q, f.p)
    worse = spoiled(W, best.a, f, sigma, flatness=2 * best.flatness)
    np.testing.assert_allclose(f.phi @ worse, y, atol=1e-8)
    assert float(f.q @ np.abs(worse) ** f.p) == pytest.approx(2 * best.flatness, rel=1e-9)
    assert population_loss(W, worse, sigma, link, U) > population_loss(W, best.a, sigma, link, U)
    g = features(W[:4], x, sigma)
    np.testing.assert_array_equal(spoiled(W[:4], np.ones(4), g, sigma, flatness=1e9), np.ones(4))
    with pytest.raises(ArgumentError, match="flatness must be at least"):
        spoiled(W, best.a, f, sigma, flatness=0.5 * best.flatness)
