import numpy as np
import pytest
from cases.planted import SPECTRA, Counted, plant, spectrum

from steppe.linalg import dense, diagonal


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("p", [1, 2, 8, 60])
def test_within_four_standard_errors(name, p):
    A = plant(spectrum(name, p), 0)
    matvec = Counted(A)
    found = diagonal(matvec, p, rtol=0.1, key=1)
    error = np.abs(found.value - dense.diagonal(A))
    # The largest of p errors; standard errors from eight probes or more are themselves off by a third.
    assert (error <= 8 * found.stderr + 1e-12 * np.abs(A).max()).all()
    assert found.matvecs == matvec.calls
    assert found.converged == (np.linalg.norm(found.stderr) <= 0.1 * np.linalg.norm(found.value))


def test_standard_errors_are_right_on_average():
    A = plant(spectrum("uniform", 20), 0)
    exact = np.sqrt((A**2).sum(axis=1) - np.diag(A) ** 2)
    runs = [diagonal(lambda v: A @ v, 20, rtol=1e-9, max_matvecs=15, key=i) for i in range(400)]
    spread = np.std([r.value for r in runs], axis=0) * np.sqrt(15)
    np.testing.assert_allclose(spread, exact, rtol=4 / np.sqrt(2 * 400))
    variance = np.mean([r.stderr**2 for r in runs], axis=0) * 15
    np.testing.assert_allclose(variance, exact**2, rtol=4 * np.sqrt(2 / 14 / 400))
    assert not runs[0].converged


def test_exact_for_a_diagonal_operator_and_for_unit_vectors():
    d = np.arange(500.0)
    found = diagonal(lambda v: d * v, 500, key=0)
    assert np.array_equal(found.value, d)
    assert not found.stderr.any()
    A = plant(spectrum("uniform", 12), 0)
    exact = diagonal(lambda v: A @ v, 12, rtol=1e-6, key=0)
    assert np.array_equal(exact.value, np.diag(A))
    assert exact.converged
    assert not exact.stderr.any()
