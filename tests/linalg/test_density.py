import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases.planted import SPECTRA, plant, spectrum
from matfree import decomp, funm

from steppe.linalg import dense, lanczos, spectral_density


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("p", [1, 2, 60])
def test_integrates_to_one_with_the_trace_for_first_moment(name, p):
    A = plant(spectrum(name, p), 0)
    found = spectral_density(lambda v: A @ v, p, probes=10, steps=20, key=0)
    assert found.weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert found.weights.min() >= 0.0
    # The tails beyond seven widths hold 2.6e-12.
    assert np.trapezoid(found.density, found.grid) == pytest.approx(1.0, abs=1e-11)
    assert (found.grid @ found.density) * (found.grid[1] - found.grid[0]) == pytest.approx(
        found.mean(), abs=1e-10 * np.abs(found.grid).max()
    )
    # zᵀAz/p for z on the sphere has variance 2(‖A‖²_F/p − (tr A/p)²)/(p + 2).
    moments = np.array([(A**2).sum() / p, np.trace(A) / p])
    stderr = np.sqrt(max(0.0, 2 * (moments[0] - moments[1] ** 2) / (p + 2)) / 10)
    assert abs(found.mean() - moments[1]) <= 4 * stderr + 1e-12 * np.abs(A).max()


@pytest.mark.parametrize("name", ["uniform", "outliers", "clustered", "rank deficient"])
def test_equals_the_dense_twin_within_its_standard_error(name):
    p = 120
    A = plant(spectrum(name, p), 1)
    found = spectral_density(lambda v: A @ v, p, probes=40, steps=p, width=0.1, key=3)
    exact = dense.density(A, found.grid, 0.1)
    inside = exact > 1e-3 * exact.max()
    score = np.abs(found.density - exact)[inside] / found.stderr[inside]
    assert np.mean(score <= 4) >= 0.99


def test_resolves_an_outlier_with_its_weight():
    p = 200
    A = plant(np.append(np.linspace(0.0, 0.1, p - 1), 1.0), 0)
    found = spectral_density(lambda v: A @ v, p, probes=30, steps=10, key=0)
    near = np.abs(found.nodes - 1.0) < 1e-6
    # Each probe has weight χ²₁/p there: mean 1/p, variance 2/p².
    assert found.weights[near].sum() == pytest.approx(1 / p, abs=4 * np.sqrt(2 / 30) / p)
    assert near.sum() == 30


def test_quadrature_equals_matfree():
    """∫ f dμ for one vector, f = exp."""
    A, z = plant(spectrum("outliers", 40), 0), np.random.default_rng(0).standard_normal(40)
    nodes, weights = lanczos(lambda v: A @ v, 40, z, steps=8).quadrature()
    with jax.enable_x64(True), jax.numpy_rank_promotion("allow"):
        integrand = funm.monte_carlo_funm_sym(
            funm.dense_funm_sym_eigh(jnp.exp), decomp.tridiag_sym(8, materialize=True, reortho="full")
        )
        theirs = float(integrand(lambda v: jnp.asarray(A) @ v, jnp.asarray(z)))
    assert weights @ np.exp(nodes) * (z @ z) == pytest.approx(theirs, rel=1e-12)


def test_own_grid_and_products():
    d = np.repeat([0.0, 1.0], 20)
    grid = np.linspace(-1.0, 2.0, 7)
    found = spectral_density(lambda v: d * v, 40, probes=3, steps=30, grid=grid, width=0.5, key=0)
    assert np.array_equal(found.grid, grid)
    assert found.matvecs == 6  # two distinct eigenvalues end each chain after two products
    assert (found.stderr >= 0.0).all()
