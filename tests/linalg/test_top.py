import numpy as np
import pytest
from cases.planted import SPECTRA, Counted, plant, spectrum

from steppe.estimate import Accuracy
from steppe.linalg import Operator, dense, top_eigenpairs
from steppe.linalg._subspace import Subspace, eigenvalue_upper


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("block", [1, 3])
@pytest.mark.parametrize(("p", "k"), [(1, 1), (2, 1), (2, 2), (5, 3), (50, 4)])
def test_covers_all_and_is_as_narrow_as_asked(name, block, p, k):
    A = plant(spectrum(name, p), k)
    matvec = Counted(A)
    found = top_eigenpairs(matvec, p, k, block=min(block, p), key=p)
    truth, _ = dense.top_eigenpairs(A, k)
    for e, value in zip(found.estimates, truth, strict=True):
        assert e.lower <= value <= e.upper
        assert e.matvecs == matvec.calls
        assert e.converged == (e.upper - e.lower <= 1e-3 * abs(e.value))
        assert e.converged or abs(value) <= 1e-10
    assert np.abs(found.vectors.T @ found.vectors - np.eye(k)).max() <= 1e-12
    rayleigh = np.einsum("pi,pq,qi->i", found.vectors, A, found.vectors)
    np.testing.assert_allclose(rayleigh, [e.value for e in found.estimates], atol=1e-12 * max(1, np.abs(A).max()))


def test_multiple_eigenvalues_are_counted():
    A = plant(np.concatenate([np.linspace(0.0, 0.5, 60), [0.8, 1.0, 1.0, 1.0, 1.0]]), 0)
    for block in (1, 2, 4):
        found = top_eigenpairs(lambda v: A @ v, 65, 5, block=block, key=block).estimates
        assert [round(e.value, 3) for e in found] == [1.0, 1.0, 1.0, 1.0, 0.8]


def test_a_block_as_large_as_the_cluster_needs_fewer_products():
    d = np.concatenate([np.linspace(0.0, 0.5, 300), np.ones(6)])
    one = top_eigenpairs(lambda v: d * v, 306, 6, key=0).estimates[0].matvecs
    six = top_eigenpairs(lambda v: d * v, 306, 6, block=6, key=0).estimates[0].matvecs
    assert six < one


def test_stopping_early_is_said():
    d = np.linspace(0.0, 1.0, 300)
    found = top_eigenpairs(lambda v: d * v, 300, 3, accuracy=Accuracy(1e-3, max_matvecs=20), key=0).estimates
    assert not any(e.converged for e in found)
    assert all(e.lower <= truth <= e.upper for e, truth in zip(found, d[::-1], strict=False))


def test_coverage_of_all_intervals_together():
    """Four intervals at once, 240 trials at 0.95: at most 12 failures expected, four standard errors are 14."""
    missed = 0
    names = ["outliers", "clustered", "uniform", "rank deficient"]
    for seed in range(240):
        d = spectrum(names[seed % 4], 30)
        found = top_eigenpairs(lambda v, d=d: d * v, 30, 4, accuracy=Accuracy(0.05, 0.95), key=seed).estimates
        missed += not all(e.lower <= t <= e.upper for e, t in zip(found, d[::-1], strict=False))
    assert missed <= 26


@pytest.mark.parametrize("seed", range(20))
def test_schur_bound_holds_for_any_subspace(seed):
    rng = np.random.default_rng(seed)
    p, k = 12, 1 + seed % 5
    A = plant(rng.standard_normal(p), seed)
    known = Subspace.multiplied(Operator(lambda v: A @ v, p), rng.standard_normal((k, p)))
    complement = np.linalg.qr(np.hstack([known.rows.T, rng.standard_normal((p, p - k))]))[0][:, k:]
    sigma = np.linalg.eigvalsh(complement.T @ A @ complement)[-1]
    for i, truth in enumerate(np.linalg.eigvalsh(A)[::-1][:k]):
        bound = eigenvalue_upper(i, known, sigma)
        assert truth <= bound + 1e-12
        assert bound <= max(np.linalg.eigvalsh(known.H)[-1 - i], sigma) + np.linalg.norm(known.residuals, 2) + 1e-12
