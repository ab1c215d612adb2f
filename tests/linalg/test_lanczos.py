import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases.planted import SPECTRA, plant, spectrum
from matfree import decomp

from steppe.linalg import dense, lanczos

EPS = np.finfo(float).eps


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("p", [2, 40])
def test_basis_is_orthonormal_and_projects_to_a_tridiagonal(name, p):
    A = plant(spectrum(name, p), 0)
    t = lanczos(lambda v: A @ v, p, np.random.default_rng(1).standard_normal(p), steps=p)
    k, scale = len(t.alpha), max(np.linalg.norm(A, 2), 1e-300)
    T = np.diag(t.alpha) + np.diag(t.beta[:-1], 1) + np.diag(t.beta[:-1], -1)
    # Two passes leave a few units of rounding a vector, whatever the spectrum.
    assert np.abs(t.basis.T @ t.basis - np.eye(k)).max() <= 10 * EPS * np.sqrt(p)
    assert np.abs(t.basis.T @ A @ t.basis - T).max() <= 50 * EPS * np.sqrt(p) * scale
    assert t.beta[-1] <= 50 * EPS * np.sqrt(p) * scale  # the space is invariant at the end


def test_equals_the_dense_twin():
    A = plant(spectrum("uniform", 30), 2)
    start = np.random.default_rng(0).standard_normal(30)
    t = lanczos(lambda v: A @ v, 30, start, steps=6)
    alpha, beta = dense.lanczos(A, start, 6)
    # The Krylov matrix of six columns has condition below 1e4 here.
    np.testing.assert_allclose(t.alpha, alpha, atol=1e4 * 50 * EPS)
    np.testing.assert_allclose(t.beta[:-1], beta, atol=1e4 * 50 * EPS)


def test_equals_matfree():
    A, start = plant(spectrum("outliers", 50), 3), np.random.default_rng(5).standard_normal(50)
    ours = lanczos(lambda v: A @ v, 50, start, steps=12)
    with jax.enable_x64(True), jax.numpy_rank_promotion("allow"):
        algorithm = decomp.tridiag_sym(12, materialize=False, reortho="full")
        theirs = algorithm(lambda v: jnp.asarray(A) @ v, jnp.asarray(start / np.linalg.norm(start)))
        alpha, beta = (np.asarray(x) for x in theirs.J_small)
    # Lanczos coefficients have condition numbers of order 1e3 for well separated outliers.
    np.testing.assert_allclose(ours.alpha, alpha, atol=1e3 * 50 * EPS)
    np.testing.assert_allclose(ours.beta[:-1], np.abs(beta), atol=1e3 * 50 * EPS)


def test_invariant_space_ends_it():
    d = np.repeat([1.0, 2.0, 5.0], 10)
    t = lanczos(lambda v: d * v, 30, np.ones(30), steps=20)
    assert len(t.alpha) == 3
    nodes, weights = t.quadrature()
    np.testing.assert_allclose(nodes, [1.0, 2.0, 5.0], atol=50 * EPS)
    np.testing.assert_allclose(weights, 1 / 3, atol=50 * EPS)


def test_quadrature_is_exact_for_low_degrees():
    A = plant(spectrum("uniform", 25), 1)
    b = np.random.default_rng(2).standard_normal(25)
    b /= np.linalg.norm(b)
    nodes, weights = lanczos(lambda v: A @ v, 25, b, steps=4).quadrature()
    for degree in range(8):  # 2·4 − 1 is the last exact one
        exact = b @ np.linalg.matrix_power(A, degree) @ b
        assert abs(weights @ nodes**degree - exact) <= 100 * EPS
    assert abs(weights @ nodes**8 - b @ np.linalg.matrix_power(A, 8) @ b) > 1e-6
