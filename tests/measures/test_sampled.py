"""Measures that sample or search: against quadratics, where the answer is known."""

import numpy as np
import pytest
import scipy.optimize
from dense_curvature import problem

import steppe
from steppe import measures
from steppe.check import ArgumentError
from steppe.measures._policy import interval

RNG = np.random.default_rng(0)
X, W, Y = RNG.normal(size=(9, 4)), RNG.normal(size=4), RNG.normal(size=9)
QUADRATIC = steppe.Problem(lambda w, x: x @ w, W, X, Y, steppe.losses.half_mse)
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
            lambda key: measures.random_direction_sharpness(QUADRATIC, W, sigma=0.3, confidence=0.9, rtol=0.3, key=key),
            0.5 * 0.3**2 * np.trace(H),
        ),
        (
            lambda key: measures.adaptive_sharpness(QUADRATIC, W, radius=0.2, confidence=0.9, rtol=0.3, key=key),
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
    found = measures.adaptive_sharpness(QUADRATIC, W, kind="worst", radius=radius, steps=100)
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
    assert measures.adaptive_sharpness(p, p.w0, kind="worst", radius=radius).value > average.upper


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "mean"}, "kind must be 'average' or 'worst'; got 'mean'"),
        ({"radius": 0.0}, "radius must be a finite number > 0; got 0.0"),
        ({"max_evaluations": 10}, "max_evaluations must be a whole number ≥ 128; got 10"),
        ({"kind": "worst", "restarts": -1}, "restarts must be a whole number ≥ 0; got -1"),
    ],
)
def test_wrong_policies_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        measures.adaptive_sharpness(QUADRATIC, W, **arguments)


def test_a_step_that_overflows_is_refused():
    p = steppe.Problem(lambda w, x: np.float32(1e30) * x @ w, W.astype("f"), X, Y, steppe.losses.half_mse)
    with pytest.raises(ArgumentError, match="The loss overflows at that distance"):
        measures.random_direction_sharpness(p, W.astype("f"), sigma=1.0)
