"""Risk, the three algorithms and their expected errors: closed forms, quadrature, draws, fresh examples."""

import numpy as np
import pytest
from cases.draws import SEED
from hypothesis import given, settings
from scipy.optimize import minimize

from steppe.check import ArgumentError
from steppe.papers.conflicting_biases.theory import risks
from steppe.papers.conflicting_biases.theory.risks import (
    Folded,
    LogNormal,
    Moments,
    gaussian,
    mean,
    min_norm,
    min_risk,
    min_sharpness,
    risk,
    standard_error,
    unconstrained,
    unconstrained_risk,
)

LAWS = {
    "folded": Folded(3, noise=0.5),
    "folded-beta": Folded(2, (0.5, 2.0)),
    "lognormal": LogNormal((1.0, 0.5, 2.0)),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_moments_and_risk_against_draws(law):
    x, y = law(np.random.default_rng(0), 200_000)
    m = law.moments()
    d = x.shape[1]
    for values, exact in [(y**2, m.sigma2), *((x[:, i] * y, m.mu[i]) for i in range(d)),
                          *((x[:, i] * x[:, j], m.Sigma[i, j]) for i in range(d) for j in range(i, d))]:  # fmt: skip
        assert abs(mean(values).value - exact) < 4.5 * standard_error(mean(values))
    u = np.linspace(0.5, 1.5, d)
    losses = mean(0.5 * (x @ u - y) ** 2)
    assert abs(losses.value - float(m.risk(u))) < 4.5 * standard_error(losses)


def test_risk_of_the_gaussian_is_the_general_one():
    w = np.random.default_rng(1).normal(size=(5, 4))
    np.testing.assert_allclose(risk(w), gaussian(4).risk(w**2), rtol=1e-13)
    np.testing.assert_allclose(risk(w), 0.5 * np.sum(w**4, 1) - np.sum(w**2, 1) + 2.5, rtol=1e-13)


@settings(max_examples=20)
@given(SEED)
def test_the_least_risk_is_that_of_an_optimiser(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    A = rng.normal(size=(d, d))
    m = Moments(A @ A.T + 0.3 * np.eye(d), rng.normal(size=d), 10.0)
    x, y = rng.uniform(0.1, 2.0, d), float(rng.uniform(0.1, 3.0))
    u = min_risk(x, y, m)
    found = minimize(m.risk, min_norm(x, y), jac=lambda v: m.Sigma @ v - m.mu, bounds=[(0, None)] * d,
                     constraints={"type": "eq", "fun": lambda v: x @ v - y}, method="SLSQP",
                     options={"ftol": 1e-14, "maxiter": 300})  # fmt: skip
    assert (u >= 0).all()
    assert x @ u == pytest.approx(y, rel=1e-10)
    assert float(m.risk(u)) == pytest.approx(found.fun, rel=1e-7, abs=1e-8)
    assert float(unconstrained_risk(x, y, m)) <= float(m.risk(u)) + 1e-10
    free = unconstrained(x, y, m)
    assert float(unconstrained_risk(x, y, m)) == pytest.approx(float(m.risk(free)), rel=1e-9, abs=1e-10)


def test_the_formula_of_the_paper_for_the_optimum():
    """Σ^{−½}(P⊥ μ_Σ + y x_Σ/‖x_Σ‖²) with the root of Σ by its eigenvectors."""
    m = LAWS["lognormal"].moments()
    x, y = np.array([0.5, 1.0, 1.7]), 2.0
    values, vectors = np.linalg.eigh(m.Sigma)
    root = vectors / np.sqrt(values) @ vectors.T
    xs, mus = root @ x, root @ m.mu
    stated = root @ (mus - xs * (xs @ mus) / (xs @ xs) + y * xs / (xs @ xs))
    np.testing.assert_allclose(unconstrained(x, y, m), stated, rtol=1e-10)


def expected_risk(algorithm, law, m, *, samples, key=0):
    """E R(A(x₀, y₀)) over draws of the one training example."""
    return mean(m.risk(algorithm(*law(np.random.default_rng(key), samples))))


@pytest.mark.parametrize("algorithm", [min_norm, min_sharpness])
def test_expected_errors_against_losses_on_fresh_examples(algorithm):
    law, m = LAWS["lognormal"], LAWS["lognormal"].moments()
    stated = expected_risk(algorithm, law, m, samples=100_000, key=1)
    rng = np.random.default_rng(2)
    (x0, y0), (x, y) = law(rng, 100_000), law(rng, 100_000)
    fresh = mean(0.5 * (np.sum(algorithm(x0, y0) * x, axis=1) - y) ** 2)
    assert abs(stated.value - fresh.value) < 4.5 * np.hypot(standard_error(stated), standard_error(fresh))
    k = np.argmax(algorithm(x0, y0), axis=1)
    np.testing.assert_allclose(risks.single_entry_risk(x0, y0, k, m), m.risk(algorithm(x0, y0)), rtol=1e-9)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_folded_expectations_exactly(n):
    first, second = risks.ratios_to_max(n)
    x, y = Folded(n)(np.random.default_rng(3), 200_000)
    ratio = y / x.max(axis=1)
    for values, exact in ((ratio, first), (ratio**2, second)):
        assert abs(mean(values).value - exact) < 4.5 * standard_error(mean(values))
    drawn = expected_risk(min_norm, Folded(n), Folded(n).moments(), samples=200_000)
    assert drawn.lower - 2 * standard_error(drawn) < risks.min_norm_error(n) < drawn.upper + 2 * standard_error(drawn)


def test_two_dimensions_in_closed_form():
    first, second = risks.ratios_to_max(2)
    assert first == pytest.approx(1 + 2 / np.pi * np.log(2), rel=1e-10)
    assert second == pytest.approx(4 / np.pi * (1 + np.log(2)), rel=1e-10)
    assert risks.ratios_to_max(1) == pytest.approx((1.0, 1.0), rel=1e-10)


def test_the_least_sharpness_has_no_expectation():
    """Truncated expectations agree with draws and grow as their asymptotes say: ln(1/δ) and 1/δ."""
    n, delta = 3, 0.05
    x, y = Folded(n)(np.random.default_rng(4), 300_000)
    kept, ratio = x.min(axis=1) > delta, y / x.min(axis=1)
    for power, exact in ((1, risks.truncated_min(n, delta)[0]), (2, risks.truncated_min(n, delta)[1])):
        drawn = mean(np.where(kept, ratio**power, 0))
        assert abs(drawn.value - exact) < 4.5 * standard_error(drawn)
    coarse, fine = (risks.truncated_min(n, d) for d in (1e-6, 1e-7))
    assert fine[0] - coarse[0] == pytest.approx(risks.log_rate(n) * np.log(10), rel=1e-4)
    assert fine[1] * 1e-7 == pytest.approx(risks.square_rate(n), rel=1e-4)
    assert risks.min_sharpness_error(n, 1e-7) * 2e-7 == pytest.approx(risks.square_rate(n), rel=1e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: min_norm([1.0, -1.0], 1.0), "non-negative"),
        (lambda: min_norm([1.0, 2.0], -1.0), "non-negative"),
        (lambda: min_norm([0.0, 0.0], 1.0), "no x all zero"),
        (lambda: min_sharpness([0.0, 1.0], 1.0), "without zeros"),
        (lambda: min_norm([[1.0, 2.0]], [1.0, 2.0]), "y must be of shape"),
        (lambda: min_risk(np.ones(9), 1.0, gaussian(9)), "at most 8"),
        (lambda: Moments(np.eye(3), np.ones(2), 1.0), "Sigma must be symmetric"),
        (lambda: Moments(np.zeros((2, 2)), np.ones(2), 1.0), "positive definite"),
        (lambda: risks.truncated_min(2, 0.0), "delta must be"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
