import numpy as np
import pytest
from cases.planted import SPECTRA, Counted, plant, spectrum
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import LinearOperator, eigsh

from steppe.estimate import Accuracy
from steppe.linalg import dense, largest, smallest, spectral_norm

ROUTINES = {largest: dense.largest, smallest: dense.smallest, spectral_norm: dense.spectral_norm}


@pytest.mark.parametrize("routine", ROUTINES)
@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("p", [1, 2, 3, 60])
def test_covers_and_is_as_narrow_as_asked(routine, name, p):
    A = plant(spectrum(name, p), p)
    matvec = Counted(A)
    pair = routine(matvec, p, accuracy=Accuracy(1e-4), key=p)
    e, truth = pair.estimate, ROUTINES[routine](A).value
    rounding = 100 * np.finfo(float).eps * np.linalg.norm(A, 2)
    assert e.lower <= truth <= e.upper
    assert e.lower <= e.value <= e.upper
    assert e.matvecs == matvec.calls
    assert e.converged == (e.upper - e.lower <= 1e-4 * abs(e.value))
    assert e.converged or abs(truth) <= rounding  # zero, as far as can be told
    assert np.linalg.norm(pair.vector) == pytest.approx(1.0, abs=1e-12)
    assert abs(pair.vector @ A @ pair.vector) == pytest.approx(abs(e.value), abs=rounding)


@pytest.mark.parametrize("routine", ROUTINES)
@pytest.mark.parametrize("basis", [4, 7, 16])
def test_memory_bound_does_not_change_the_answer(routine, basis):
    A = plant(spectrum("uniform", 80), 0)
    e = routine(lambda v: A @ v, 80, basis=basis, key=0).estimate
    assert e.converged
    assert e.lower <= ROUTINES[routine](A).value <= e.upper


def test_exact_cases_say_so():
    for routine in ROUTINES:
        zero = routine(np.zeros_like, 50, key=0).estimate
        assert zero.is_exact
        assert (zero.value, zero.matvecs, zero.confidence) == (0.0, 1, 1.0)
    assert largest(lambda v: -3.0 * v, 1, key=0).estimate.is_exact
    assert largest(lambda v: -3.0 * v, 1, key=0).estimate.value == -3.0
    assert spectral_norm(lambda v: -3.0 * v, 1, key=0).estimate.value == 3.0
    A = plant(spectrum("uniform", 6), 0)
    spanned = largest(lambda v: A @ v, 6, accuracy=Accuracy(1e-13), key=0).estimate
    assert spanned.confidence == 1.0
    assert spanned.matvecs == 6
    assert spanned.upper - spanned.lower <= 1e-12  # rounding only


def test_stopping_early_is_said_and_still_covers():
    d = np.linspace(0.0, 1.0, 500)
    for budget in (1, 2, 5, 20):
        e = largest(lambda v: d * v, 500, accuracy=Accuracy(1e-3, max_matvecs=budget), key=budget).estimate
        assert not e.converged
        assert e.matvecs == budget
        assert e.lower <= 1.0 <= e.upper < np.inf


def test_settle_stops_at_the_value_before_the_interval():
    d = np.append(np.linspace(0.0, 0.5, 999), 1.0)
    full = largest(lambda v: d * v, 1000, key=0).estimate
    early = largest(lambda v: d * v, 1000, settle=1e-3, key=0).estimate
    assert early.matvecs < full.matvecs
    assert abs(early.value - 1.0) <= 1e-3
    assert early.lower <= 1.0 <= early.upper


def test_a_negative_eigenvalue_of_larger_size_does_not_pass_for_the_largest():
    A = plant(spectrum("negative-dominant", 60), 0)
    assert largest(lambda v: A @ v, 60, key=0).estimate.value == pytest.approx(1.0, rel=1e-3)
    assert smallest(lambda v: A @ v, 60, key=0).estimate.value == pytest.approx(-10.0, rel=1e-3)
    pair = spectral_norm(lambda v: A @ v, 60, key=0)
    assert pair.estimate.value == pytest.approx(10.0, rel=1e-3)
    assert pair.vector @ A @ pair.vector < 0.0


def test_a_warm_start_settles_in_fewer_products_and_a_misleading_one_is_not_believed():
    A = plant(np.append(np.linspace(0.0, 0.9, 299), 1.0), 0)
    values, vectors = np.linalg.eigh(A)
    cold = largest(lambda v: A @ v, 300, settle=1e-4, key=0).estimate
    warm = largest(lambda v: A @ v, 300, settle=1e-4, start=vectors[:, -1], key=0).estimate
    assert warm.matvecs <= cold.matvecs // 2
    wrong = largest(lambda v: A @ v, 300, start=vectors[:, -2], key=0).estimate
    assert wrong.converged
    assert wrong.lower <= values[-1] <= wrong.upper


def test_same_key_same_result():
    d = np.linspace(0.0, 1.0, 50)
    first, again = (largest(lambda v: d * v, 50, key=7) for _ in range(2))
    assert first.estimate == again.estimate
    assert np.array_equal(first.vector, again.vector)
    by_generator = largest(lambda v: d * v, 50, key=np.random.default_rng(7)).estimate
    assert by_generator == first.estimate


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.floats(-1e3, 1e3, allow_subnormal=False), min_size=1, max_size=12),
    st.integers(0, 10**6),
    st.floats(-8, 8),
)
def test_any_small_spectrum_at_any_scale(eigenvalues, seed, exponent):
    d = np.array(eigenvalues) * 10.0**exponent
    A = plant(d, seed)
    for routine, twin in ROUTINES.items():
        e = routine(lambda v: A @ v, len(d), accuracy=Accuracy(1e-6, 1 - 1e-6), key=seed).estimate
        assert e.lower <= twin(A).value <= e.upper
        assert np.isfinite([e.lower, e.upper]).all()


@pytest.mark.parametrize("shift", [-10.0, 0.0, 3.0])
def test_shift_moves_the_value(shift):
    A = plant(spectrum("outliers", 40), 0)
    plain = largest(lambda v: A @ v, 40, key=0).estimate
    moved = largest(lambda v: A @ v + shift * v, 40, settle=None, key=0).estimate
    # Each is within its own interval.
    assert moved.lower <= plain.upper + shift
    assert plain.lower + shift <= moved.upper


@pytest.mark.parametrize("name", [name for name in SPECTRA if name != "zero"])
def test_fewer_products_than_arpack_to_the_same_accuracy(name):
    """And little more for the certificate, which ARPACK does not give."""
    p = 400
    d, rng = spectrum(name, p), np.random.default_rng(0)
    theirs, settled, certified = 0, 0, 0
    for key in range(5):
        matvec = Counted(np.diag(d))
        operator = LinearOperator((p, p), matvec=matvec, dtype=float)
        eigsh(operator, k=1, which="LA", tol=1e-3, v0=rng.standard_normal(p))
        theirs += matvec.calls
        early = largest(lambda v: d * v, p, settle=1e-3, key=key).estimate
        assert abs(early.value - d[-1]) <= 1e-3 * abs(d[-1])
        settled += early.matvecs
        certified += largest(lambda v: d * v, p, key=key).estimate.matvecs
    assert settled <= theirs
    assert certified <= 1.5 * theirs
