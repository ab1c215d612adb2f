"""Moments in closed form against quadrature, population loss against a fresh sample."""

import numpy as np
import pytest
from scipy.integrate import dblquad

from steppe.activations import leaky, linear, monomial, quadratic, rectifier, relu_power
from steppe.check import ArgumentError
from steppe.data import orthonormal
from steppe.data.links import Composed, Linear, Polynomial, QuadraticForm, SumOfSingleIndex
from steppe.papers.multi_index.theory import population_loss, product_mean, quadrant, sampled_loss

LINKS = [
    SumOfSingleIndex(rectifier, (1.0, -2.0)),
    Polynomial(leaky(0.2), (1.0, 0.5), 2),
    Linear((1.0, 2.0)),
    QuadraticForm(((1.0, 0.5), (0.5, -1.0))),
]


@pytest.mark.parametrize(("p", "q"), [(0, 0), (1, 0), (1, 1), (3, 0), (2, 1), (3, 2), (4, 4)])
@pytest.mark.parametrize("rho", [-0.7, 0.0, 0.4])
def test_quadrant_by_quadrature(p, q, rho):
    scale = 1 / (2 * np.pi * np.sqrt(1 - rho**2))

    def integrand(v, u):
        return u**p * v**q * scale * np.exp(-(u**2 - 2 * rho * u * v + v**2) / (2 * (1 - rho**2)))

    # Beyond 12 standard deviations the mass is 1e-31.
    expected, error = dblquad(integrand, 0, 12, 0, 12, epsabs=1e-9, epsrel=1e-9)
    assert quadrant(p, q, rho) == pytest.approx(expected, abs=10 * error + 1e-10)


def test_monomials_are_moments_of_gaussians():
    """E g₁⁴g₂² = 3 + 12ρ² (Isserlis), E g₁g₂ = ρ."""
    W, V = np.array([[1.0, 0.0]]), np.array([[0.6, 0.8]])
    assert product_mean(monomial(4), quadratic, W, V)[0, 0] == pytest.approx(3 + 12 * 0.36, rel=1e-13)
    assert product_mean(linear, linear, W, V)[0, 0] == pytest.approx(0.6, rel=1e-13)


@pytest.mark.parametrize("link", LINKS, ids=lambda link: type(link).__name__)
@pytest.mark.parametrize("sigma", [rectifier, leaky(0.1), quadratic, relu_power(3), linear], ids=str)
def test_population_loss_against_a_sample(sigma, link):
    rng = np.random.default_rng(0)
    W, a, U = rng.normal(size=(4, 5)) / 2, rng.normal(size=4), orthonormal(2, 5, key=3)
    exact = population_loss(W, a, sigma, link, U, noise=0.3)
    sampled = sampled_loss(W, a, sigma, link, U, noise=0.3, n=40_000, key=1)
    assert sampled.lower <= exact <= sampled.upper
    assert sampled.upper - sampled.lower < exact  # the interval is narrow enough to mean something


def test_a_network_that_equals_the_link():
    U = orthonormal(2, 4)
    assert population_loss(U, [1.0, -2.0], rectifier, LINKS[0], U, noise=0.1) == pytest.approx(0.01, abs=1e-13)
    assert sampled_loss(U, [1.0, -2.0], rectifier, LINKS[0], U, b=[0.0, 0.0], n=10).value == pytest.approx(
        0.0, abs=1e-25
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: population_loss([[1.0]], [1.0], linear, Composed(np.tanh, Linear()), [[1.0]]), "closed form"),
        (lambda: population_loss([[1.0]], [1.0], relu_power(1.5), Linear(), [[1.0]]), "degree must be whole"),
        (lambda: population_loss([[1.0]], [1.0, 2.0], linear, Linear(), [[1.0]]), "one outer weight"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
