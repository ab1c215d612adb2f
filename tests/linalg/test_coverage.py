"""400 random trials over the planted spectra: an interval of confidence 0.99 covers the truth at least 396 times."""

import numpy as np
import pytest
from cases.planted import SPECTRA, plant, spectrum

from steppe.estimate import Accuracy
from steppe.linalg import hutchinson, hutchpp, largest, smallest, spectral_norm, xtrace

# The nominal share: the intervals are wider than necessary, and miss once in 400 or never. Intervals that miss three
# times in 100 would pass this test once in 100 runs.
TRIALS, COVERED = 400, 396
NAMES = list(SPECTRA)


def trials(sizes, matrices=5, count=TRIALS):
    """(A, its eigenvalues, a key), with a few random eigenbases for each spectrum and size."""
    planted = [(plant(spectrum(n, p), s), spectrum(n, p)) for n in NAMES for p in sizes for s in range(matrices)]
    for i in range(count):
        yield *planted[i % len(planted)], 10_000 + i


def honest(e, rtol):
    return e.converged == (e.upper - e.lower <= rtol * abs(e.value))


@pytest.mark.parametrize("routine", [largest, smallest, spectral_norm])
def test_extreme_eigenvalues(routine):
    reduce = {largest: np.max, smallest: np.min, spectral_norm: lambda d: np.abs(d).max()}[routine]
    covered = 0
    for A, d, key in trials([2, 12, 40]):
        e = routine(lambda v, A=A: A @ v, len(d), accuracy=Accuracy(0.02), basis=16, key=key).estimate
        covered += e.lower <= reduce(d) <= e.upper
        assert honest(e, 0.02)
        assert e.converged or abs(reduce(d)) < 1e-10
    assert covered >= COVERED


def test_warm_starts_from_wrong_vectors():
    """The start is the second eigenvector: the certificate must hold."""
    covered, rng = 0, np.random.default_rng(0)
    for A, d, key in trials([12, 50], count=220):
        start = np.linalg.eigh(A)[1][:, -2] if key % 3 == 0 else rng.standard_normal(len(d))
        e = largest(lambda v, A=A: A @ v, len(d), accuracy=Accuracy(0.05), start=start, key=key).estimate
        covered += e.lower <= d.max() <= e.upper
    assert covered >= 218


@pytest.mark.parametrize("estimator", [hutchinson, hutchpp, xtrace])
def test_traces(estimator):
    covered = 0
    for A, d, key in trials([28, 60]):
        e = estimator(lambda v, A=A: A @ v, len(d), accuracy=Accuracy(0.5, max_matvecs=56), key=key)
        slack = 1e-12 * np.abs(d).sum() if e.is_exact else 1e-14 * np.abs(d).sum()
        covered += e.lower - slack <= d.sum() <= e.upper + slack
        assert honest(e, 0.5)
    assert covered >= COVERED
