"""Theorem F.1 and the errors of appendix F."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases.draws import SEED
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import ncf, norm

from steppe.check import ArgumentError
from steppe.papers.conflicting_biases.theory import printed, two_points
from steppe.papers.conflicting_biases.theory.risks import standard_error

LOGISTIC = jax.jit(lambda w, x2: 0.5 * (jax.nn.softplus(w[-1]) + jax.nn.softplus(-(jnp.dot(w[:-1], x2) + w[-1]))))
HESSIAN = jax.jit(jax.hessian(LOGISTIC))


@settings(max_examples=25)
@given(SEED)
def test_sharpness_and_loss_by_autodiff(seed):
    rng = np.random.default_rng(seed)
    x2, w = rng.normal(size=3), 2 * rng.normal(size=4)
    x2 /= np.linalg.norm(x2)
    z, b = float(w[:-1] @ x2), float(w[-1])
    eigenvalues = np.linalg.eigvalsh(HESSIAN(w, x2))
    assert float(two_points.sharpness(z, b)) == pytest.approx(eigenvalues[-1], rel=1e-10)
    np.testing.assert_allclose(np.sort(np.roots(two_points.quadratic(z, b))), eigenvalues[-2:], rtol=1e-8)
    assert two_points.loss(w, x2) == pytest.approx(float(LOGISTIC(w, x2)), rel=1e-12)
    assert printed.logistic_loss(w, x2) == -two_points.loss(w, x2)
    assert max(np.roots(printed.logistic_quadratic(z, b))) < 0 < eigenvalues[-1]


@given(st.floats(1e-3, 1.0), st.floats(0.0, 0.999))
def test_nothing_is_flatter(z, share):
    assert float(two_points.sharpness(z, -share * z)) >= two_points.LEAST - 1e-15


def test_the_number_of_the_paper():
    assert abs(two_points.LEAST - 0.277) < 5e-4
    np.testing.assert_array_equal(two_points.max_margin([0.6, 0.8]), [0.6, 0.8, -0.5])


@pytest.mark.parametrize("d", [2, 3, 4, 9])
@pytest.mark.parametrize("c", [0.5, 0.0, -0.3])
def test_isotropic_error_is_the_integral_over_the_sphere(d, c):
    weight = lambda angle: np.sin(angle) ** (d - 2)  # noqa: E731
    total, beyond = quad(weight, 0, np.pi)[0], quad(weight, np.arccos(c), np.pi)[0]
    assert two_points.isotropic(d, c) == pytest.approx(beyond / total, rel=1e-9)
    assert printed.small_mean_error(d, c) == two_points.isotropic(d + 1, c)


@pytest.mark.parametrize(("d", "m"), [(3, 0.7), (6, 2.0), (12, 3.5)])
@pytest.mark.parametrize("c", [0.5, 0.0])
def test_errors_three_ways(d, m, c):
    exact, drawn = two_points.error(d, m, c), two_points.monte_carlo(d, m, c, samples=100_000)
    # The kinks of the integrand at small d cost the quadrature up to 1e-4.
    assert abs(exact - drawn.value) < 4.5 * standard_error(drawn) + 1e-4
    if c == 0:
        # ⟨g, g′⟩ = ¼(‖g + g′‖² − ‖g − g′‖²): its sign is that of a non-central F variable minus 1.
        assert exact == pytest.approx(ncf.cdf(1.0, d, d, 2 * m**2), abs=1e-4)
    assert two_points.error(d, 0.0, c) == pytest.approx(two_points.isotropic(d, c), abs=1e-4)


def test_the_exponents():
    for c in (0.5, 0.0):
        a, b = (np.log(two_points.error(4, m, c, nodes=200)) for m in (12.0, 16.0))
        assert (a - b) / (256 - 144) == pytest.approx(two_points.exponent(c), rel=0.03)
    # Far out the printed approximation is too large by any factor.
    assert printed.projected_error(16.0, 0.5) > 1e10 * two_points.error(4, 16.0, 0.5, nodes=200)


def test_the_printed_gaussian_integrals():
    """As printed they agree with each other and with Φ in no dimension but one, and there not in their limits."""
    d, m = 4, 1.7
    for c in (0.5, 0.0):
        assert printed.projected_error(m, c) == pytest.approx(norm.cdf(-(1 - c) * m / np.sqrt(2)), rel=1e-12)
        integral = (
            quad(lambda t: np.exp(-(t**2) / 4), -np.inf, -(1 - c) * m**2)[0] / np.sqrt(2) / (2 * np.pi) ** (d / 2)
        )
        assert printed.large_mean_integral(d, m, c) == pytest.approx(integral, rel=1e-8)
        assert printed.large_mean_error(d, m, c) == pytest.approx(
            (2 * np.pi) ** -1.5 * printed.projected_error(m, c), rel=1e-12
        )


def test_the_printed_system_is_not_singular():
    z, b = 0.8, -0.2
    p, q = float(two_points.slope(b)), float(two_points.slope(z + b))
    for root in np.roots(two_points.quadratic(z, b)):
        assert abs(np.linalg.det(printed.logistic_matrix(z, b, -root))) > 1e-4
        assert np.linalg.det(np.array([[p / 2 - root, p / 2], [q / 2, q - root]])) == pytest.approx(0, abs=1e-16)


def test_wrong_arguments_are_named():
    with pytest.raises(ArgumentError, match="d must be"):
        two_points.isotropic(1, 0.5)
    with pytest.raises(ArgumentError, match="d must be"):
        two_points.error(2, 1.0, 0.5)
    with pytest.raises(ArgumentError, match="m must be"):
        two_points.error(3, -1.0, 0.5)
