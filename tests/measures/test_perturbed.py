"""Increases of the loss under perturbation: against quadratics, and where rounding hides them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from oracles.dense_curvature import dense, in_float32, problem

import steppe
from steppe import Accuracy, measures
from steppe.check import ArgumentError
from steppe.curvature._increase import in_double, unit
from steppe.measures._perturbed import interval

RNG = np.random.default_rng(0)
X, W, Y = RNG.normal(size=(9, 4)), RNG.normal(size=4), RNG.normal(size=9)
QUADRATIC = steppe.Problem(lambda w, x: x @ w, W, X, Y, steppe.losses.half_mse)
ROUGH = Accuracy(0.3, 0.9, max_matvecs=10_000)
H, G = X.T @ X / len(X), X.T @ (X @ W - Y) / len(X)


def test_the_interval_of_a_skewed_mean_holds_it():
    """64 draws of χ²₁, the most skewed loss increase there is: at 0.99, 1,000 times, four standard deviations."""
    draws = np.random.default_rng(1).standard_normal((1000, 64)) ** 2
    held = sum(lower <= 1.0 <= upper for _, lower, upper in (interval(d, 0.01) for d in draws))
    assert held >= 990 - 4 * np.sqrt(1000 * 0.99 * 0.01)


def test_constant_draws_have_no_width():
    assert interval(np.full(64, 2.0), 0.01) == (2.0, 2.0, 2.0)


@pytest.mark.parametrize(
    ("measure", "exact"),
    [
        (
            lambda key: measures.random_direction_sharpness(QUADRATIC, sigma=0.3, accuracy=ROUGH, key=key),
            0.5 * 0.3**2 * np.trace(H),
        ),
        (
            lambda key: measures.adaptive_sharpness(QUADRATIC, radius=0.2, accuracy=ROUGH, key=key),
            0.5 * 0.2**2 * (W**2 * np.diag(H)).sum(),
        ),
    ],
    ids=["random direction", "adaptive"],
)
def test_averages_of_a_quadratic(measure, exact):
    """½ E δᵀHδ, whatever the slope: pairs ±δ cancel it."""
    found = [measure(key) for key in range(20)]
    held = sum(e.lower <= exact <= e.upper for e in found)
    assert held >= 20 * 0.9 - 4 * np.sqrt(20 * 0.9 * 0.1)
    assert all(e.converged and e.upper - e.lower <= 0.3 * e.value for e in found)
    assert measure(3) == measure(3)


def test_the_worst_case_of_a_quadratic():
    """max gᵀε + ½εᵀAε over ‖ε‖ ≤ ρ: (λ − A)ε = g with λ > λ_max(A) and ‖ε‖ = ρ (Moré and Sorensen 1983)."""
    radius, C = 0.5, np.diag(np.abs(W))
    A, g = C @ H @ C, C @ G
    top = np.linalg.eigvalsh(A)[-1]

    def step(shift):
        return np.linalg.solve((top + shift) * np.eye(4) - A, g)

    shift = scipy.optimize.brentq(lambda s: np.linalg.norm(step(s)) - radius, 1e-9, 1e3, xtol=1e-14)
    exact = g @ step(shift) + 0.5 * step(shift) @ A @ step(shift)
    found = measures.worst_adaptive_sharpness(QUADRATIC, radius=radius, steps=100)
    # At rest within 1e-4 of the radius, the loss is within about that share of its maximum, and never above it.
    assert exact * (1 - 1e-4) <= found.value <= exact * (1 + 1e-12)
    assert 0 <= found.value - found.lower <= 1e-12 * exact  # rounding: 16 ulp of losses of about 10
    assert found.upper == np.inf
    assert found.converged


def test_the_worst_case_is_worse_than_the_average_of_that_length():
    """‖ε‖ of N(0, ρ²/p I) is ρ: the average over the ball cannot exceed its maximum."""
    p = problem("tanh-half-mse")
    radius = 0.3
    average = measures.adaptive_sharpness(p, p.w0, radius=radius / np.sqrt(p.w0.size))
    assert measures.worst_adaptive_sharpness(p, radius=radius).value > average.upper


def test_wrong_arguments_are_refused():
    with pytest.raises(ArgumentError, match=r"radius must be a finite number > 0; got 0\.0"):
        measures.adaptive_sharpness(QUADRATIC, radius=0.0)
    with pytest.raises(ArgumentError, match="max_matvecs must be a whole number ≥ 128; got 10"):
        measures.adaptive_sharpness(QUADRATIC, accuracy=Accuracy(0.1, max_matvecs=10))


def test_a_step_that_overflows_is_refused():
    p = steppe.Problem(lambda w, x: np.float32(1e30) * x @ w, W.astype("f"), X, Y, steppe.losses.half_mse)
    with pytest.raises(ArgumentError, match="The loss overflows at that distance"):
        measures.random_direction_sharpness(p, W.astype("f"), sigma=1.0)


# Increases that are small against the loss itself: the interval includes the rounding.

EPS = float(np.finfo(np.float64).eps)
OFFSETS, SIGMAS = (0.0, 1.0, 10.0, 100.0), 10.0 ** -np.arange(1, 10, 2)
HALF = Accuracy(0.5, max_matvecs=1500)


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
    return measures.random_direction_sharpness(p, p.w0, sigma=sigma, accuracy=HALF), exact


def adaptive(p, radius):
    exact = 0.5 * radius**2 * np.sum(np.asarray(p.w0, float) ** 2 * np.diag(hessian(p)))
    return measures.adaptive_sharpness(p, p.w0, radius=radius, accuracy=HALF), exact


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
        measures.random_direction_sharpness(q, q.w0, sigma=sigma, statistics=statistics, accuracy=HALF)
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
            found = measures.worst_adaptive_sharpness(p, radius=radius)
            assert found.lower <= exact * (1 + 2 * 1e-7 * (dtype == np.float32) + 1e-12)  # radius in float32
            if found.converged:
                assert found.value == pytest.approx(exact, rel=3e-4)  # at rest, and the rounding: 1e-4 each
            if 1000 * EPS * (1 + offset) ** 2 < 1e-5 * exact:
                assert found.converged
