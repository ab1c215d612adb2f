"""Increases of the loss that are small against the loss itself: the interval knows of the rounding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dense_curvature import dense, in_float32, problem

import steppe
from steppe import measures
from steppe.measures._perturbed import in_double, unit

EPS = float(np.finfo(np.float64).eps)
OFFSETS, SIGMAS = (0.0, 1.0, 10.0, 100.0), 10.0 ** -np.arange(1, 10, 2)
POLICY = {"rtol": 0.5, "max_evaluations": 1500}


def linear(w, x):
    return x @ w


def raised(w, x):
    return x @ w + 1000.0


def quadratic(dtype, offset, key, predict=linear):
    """½ mean (xᵀ(w − w*) − offset)²: the increase is ½ E δᵀHδ whatever the offset."""
    rng = np.random.default_rng(key)
    x, w = rng.normal(size=(5, 3)), rng.normal(size=3).astype(dtype)
    return steppe.Problem(predict, w, x, x @ w + offset, steppe.losses.half_mse)


def hessian(p):
    x = np.asarray(p.x, float)
    return x.T @ x / len(x)


def random_direction(p, sigma):
    exact = 0.5 * sigma**2 * np.trace(hessian(p))
    return measures.random_direction_sharpness(p, p.w0, sigma=sigma, **POLICY), exact


def adaptive(p, radius):
    exact = 0.5 * radius**2 * np.sum(np.asarray(p.w0, float) ** 2 * np.diag(hessian(p)))
    return measures.adaptive_sharpness(p, p.w0, radius=radius, **POLICY), exact


@pytest.mark.parametrize("measure", [random_direction, adaptive])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_intervals_hold_at_any_offset_and_distance(measure, dtype):
    """At 0.99; and rounding does not keep them wide where 1,000 ulp of the loss in float64 do not matter."""
    held = []
    for key in range(2):
        for offset in OFFSETS:
            p = quadratic(dtype, offset, key)
            for sigma in SIGMAS:
                found, exact = measure(p, sigma)
                held.append(found.lower <= exact <= found.upper)
                if 1000 * EPS * (1 + offset) ** 2 < 0.1 * exact:
                    assert found.converged, (offset, sigma, found)
    assert sum(held) >= 0.99 * len(held) - 4 * np.sqrt(len(held) * 0.99 * 0.01)


def test_float32_with_64_bits_switched_off():
    with jax.enable_x64(False):
        p = quadratic(np.float32, 10.0, 0)
        found, exact = random_direction(p, 1e-3)
        assert found.lower <= exact <= found.upper
        assert found.converged


def test_what_is_hidden_by_rounding_has_not_converged():
    found, exact = random_direction(quadratic(np.float64, 100.0, 0), 1e-9)
    assert not found.converged
    assert found.lower <= exact <= found.upper
    assert found.matvecs == 129  # more draws would not help


@pytest.mark.parametrize(
    "predict",
    [
        lambda w, x: (x.astype(np.float32) @ w.astype(np.float32)).astype(w.dtype),
        lambda w, x: jax.lax.add(x @ w, jnp.zeros(len(x), np.float32)),
    ],
    ids=["casts", "takes float32 only"],
)
def test_a_network_that_fixes_its_precision_keeps_it(predict):
    p = quadratic(np.float32, 10.0, 0, predict)
    assert in_double(p, p.w0) is None
    found, exact = random_direction(p, 1e-3)
    assert found.lower <= exact <= found.upper
    assert not found.converged


def test_the_precision_is_that_of_the_narrowest_numbers():
    cast = quadratic(np.float64, 1.0, 0, lambda w, x: (x @ w).astype(np.float32).astype(np.float64))
    assert unit(quadratic(np.float64, 1.0, 0)) == 16 * EPS
    assert unit(cast) == 16 * float(np.finfo(np.float32).eps)


def test_large_predictions_are_rounded_too():
    """f = xᵀw + 1000 has 1000 ulp of error, though neither the loss nor the slope in w tells."""
    for key in range(5):
        p = quadratic(np.float64, 1.0, key, raised)
        p = p.on(p.x, np.asarray(p.y) + 1000.0)
        found, exact = random_direction(p, 1e-7)
        assert found.lower <= exact <= found.upper


@pytest.mark.parametrize(
    ("name", "statistics"), [("tanh-half-mse", measures.FullBatch()), ("batch-statistics", measures.Frozen())]
)
def test_float32_networks(name, statistics):
    """The same network in float64, at the same parameters, has no narrower interval; and (σ²/2) tr ∇²L is in it, up to
    the next order in σ."""
    sigma, p = 1e-3, problem(name)
    narrow = in_float32(p)
    params = jax.tree.map(lambda a: np.asarray(a, float), narrow.unravel(np.asarray(narrow.w0)))
    wide = steppe.Problem(p.predict, params, narrow.x, narrow.y, p.loss_function)
    found, other = (
        measures.random_direction_sharpness(q, q.w0, sigma=sigma, statistics=statistics, **POLICY)
        for q in (narrow, wide)
    )
    assert found.upper - found.lower <= 1.2 * (other.upper - other.lower)
    exact = 0.5 * sigma**2 * np.trace(dense(wide).hessian)
    assert found.lower <= exact * (1 + sigma)
    assert found.upper >= exact * (1 - sigma)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_worst_case_is_attained(dtype):
    """One parameter: the ends of the interval are all there is, and |g|ρ|w| + ½ρ²w²h is the higher one."""
    for offset in OFFSETS:
        rng = np.random.default_rng(1)
        x, w = rng.normal(size=(5, 1)), np.array([0.7], dtype)
        p = steppe.Problem(linear, w, x, x @ w + offset, steppe.losses.half_mse)
        x, y = np.asarray(p.x, float), np.asarray(p.y, float)
        size, slope = abs(float(w[0])), np.mean(x[:, 0] * (x @ np.asarray(w, float) - y))
        for radius in SIGMAS:
            exact = abs(slope) * radius * size + 0.5 * radius**2 * size**2 * np.mean(x**2)
            found = measures.adaptive_sharpness(p, p.w0, kind="worst", radius=radius)
            assert found.lower <= exact * (1 + 2 * 1e-7 * (dtype == np.float32) + 1e-12)  # radius in float32
            if found.converged:
                assert found.value == pytest.approx(exact, rel=3e-4)  # at rest, and the rounding: 1e-4 each
            if 1000 * EPS * (1 + offset) ** 2 < 1e-5 * exact:
                assert found.converged
