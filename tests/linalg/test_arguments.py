import numpy as np
import pytest

from steppe.check import ArgumentError
from steppe.estimate import Accuracy
from steppe.linalg import (
    Tracker,
    dense,
    diagonal,
    hutchinson,
    hutchpp,
    lanczos,
    largest,
    smallest,
    spectral_density,
    spectral_norm,
    top_eigenpairs,
    xtrace,
)

SIMPLE = [largest, smallest, spectral_norm, hutchinson, hutchpp, xtrace]
ALL = [*SIMPLE, diagonal, spectral_density]


def identity(v):
    return v


@pytest.mark.parametrize("routine", ALL)
@pytest.mark.parametrize("p", [0, -3, 2.5, "ten", None])
def test_dimension(routine, p):
    with pytest.raises(ArgumentError, match=r"p must be a whole number ≥ 1; got .*number of rows"):
        routine(identity, p, key=0)


@pytest.mark.parametrize("routine", SIMPLE)
def test_accuracy(routine):
    with pytest.raises(ArgumentError, match=r"accuracy must be a steppe\.Accuracy; got 0\.001\. Pass for instance"):
        routine(identity, 3, accuracy=1e-3, key=0)


@pytest.mark.parametrize("rtol", [0.0, -1e-3, np.inf, "small"])
def test_rtol_of_a_diagonal(rtol):
    with pytest.raises(ArgumentError, match="rtol must be a finite number > 0"):
        diagonal(identity, 3, rtol=rtol, key=0)


@pytest.mark.parametrize("routine", ALL)
def test_shape_of_the_product(routine):
    with pytest.raises(ArgumentError, match=r"matvec must be a function that maps shape \(4,\).*got \(3,\).*correct p"):
        routine(lambda v: v[:-1], 4, key=0)


@pytest.mark.parametrize("routine", ALL)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_non_finite_product(routine, bad):
    with pytest.raises(ArgumentError, match=r"matvec must be finite; 4 of 4 entries.*parameters"):
        routine(lambda v: np.full_like(v, bad), 4, key=0)


@pytest.mark.parametrize("routine", ALL)
def test_complex_product(routine):
    with pytest.raises(ArgumentError, match="matvec must be a function that returns real numbers"):
        routine(lambda v: v * 1j, 4, key=0)


@pytest.mark.parametrize("routine", ALL)
def test_not_a_function(routine):
    with pytest.raises(ArgumentError, match="matvec must be a function of a vector"):
        routine(np.eye(3), 3, key=0)


@pytest.mark.parametrize("routine", ALL)
@pytest.mark.parametrize("key", [None, -1, 1.5, "seed", True])
def test_key(routine, key):
    with pytest.raises(ArgumentError, match=r"key must be .*seed"):
        routine(identity, 3, key=key)


@pytest.mark.parametrize("routine", [largest, smallest, spectral_norm])
def test_asymmetric_operator_is_refused(routine):
    A = np.random.default_rng(0).standard_normal((30, 30))
    with pytest.raises(ArgumentError, match=r"matvec must be symmetric.*\(Av \+ Aᵀv\)/2"):
        routine(lambda v: A @ v, 30, key=0)


def test_asymmetric_operator_is_refused_elsewhere():
    A = np.random.default_rng(0).standard_normal((30, 30))
    with pytest.raises(ArgumentError, match="symmetric"):
        top_eigenpairs(lambda v: A @ v, 30, 2, key=0)
    with pytest.raises(ArgumentError, match="symmetric"):
        spectral_density(lambda v: A @ v, 30, key=0)
    with pytest.raises(ArgumentError, match="symmetric"):
        lanczos(lambda v: A @ v, 30, np.ones(30), steps=4)
    with pytest.raises(ArgumentError, match="symmetric"):
        dense.matrix(lambda v: A @ v, 30)
    _, tracker = Tracker(30, key=0).measure(lambda v: (A + A.T) @ v)
    with pytest.raises(ArgumentError, match="symmetric"):
        tracker.measure(lambda v: A @ v)


def test_random_product_is_refused():
    """Dropout in the loss, say: the same vector gives two products."""
    rng = np.random.default_rng(0)
    with pytest.raises(ArgumentError, match="randomness"):
        largest(lambda v: v * rng.standard_normal(40), 40, key=0)


def test_counts():
    with pytest.raises(ArgumentError, match="k must be at most p = 3; got 4"):
        top_eigenpairs(identity, 3, 4, key=0)
    with pytest.raises(ArgumentError, match="k must be a whole number ≥ 1"):
        top_eigenpairs(identity, 3, 0, key=0)
    with pytest.raises(ArgumentError, match="block must be at most p = 3"):
        top_eigenpairs(identity, 3, 2, block=4, key=0)
    with pytest.raises(ArgumentError, match="basis must be a whole number ≥ 12"):
        top_eigenpairs(identity, 100, 10, basis=8, key=0)
    with pytest.raises(ArgumentError, match="steps must be at most p = 3"):
        lanczos(identity, 3, np.ones(3), steps=4)
    with pytest.raises(ArgumentError, match="basis must be a whole number ≥ 4"):
        largest(identity, 30, basis=2, key=0)
    with pytest.raises(ArgumentError, match=r"max_matvecs must be a whole number ≥ 11; got 10\. Each pair takes"):
        top_eigenpairs(identity, 100, 10, accuracy=Accuracy(1e-3, max_matvecs=10), key=0)
    for routine in (hutchinson, hutchpp, xtrace):
        with pytest.raises(ArgumentError, match=r"max_matvecs must be .*Fewer probes cannot carry"):
            routine(identity, 100, accuracy=Accuracy(0.05, max_matvecs=5), key=0)
    with pytest.raises(ArgumentError, match="probes must be a whole number ≥ 2"):
        spectral_density(identity, 30, probes=1, key=0)
    with pytest.raises(ArgumentError, match="call_matvecs must be a whole number ≥ 3"):
        Tracker(10, call_matvecs=2)
    with pytest.raises(ArgumentError, match=r"accuracy must be a steppe\.Accuracy"):
        Tracker(10, accuracy=1e-3)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (np.ones(4), r"start must be a vector of shape \(3,\)"),
        (np.zeros(3), "non-zero"),
        (np.full(3, np.nan), "finite"),
    ],
)
def test_start(start, message):
    with pytest.raises(ArgumentError, match=message):
        largest(identity, 3, start=start, key=0)


def test_precision_and_width():
    with pytest.raises(ArgumentError, match="precision must be a finite number ≥ 0"):
        largest(identity, 3, precision=-1.0, key=0)
    with pytest.raises(ArgumentError, match="width must be a finite number > 0"):
        spectral_density(identity, 3, width=0.0, key=0)
    with pytest.raises(ArgumentError, match="grid must be one-dimensional"):
        spectral_density(identity, 3, grid=np.zeros((2, 2)), key=0)


def test_the_operator_cannot_spoil_the_basis():
    """A product that returns or writes into its argument."""
    assert largest(identity, 20, key=0).estimate.value == pytest.approx(1.0, abs=1e-14)

    def writes(v):
        v *= 2.0
        return v

    with pytest.raises(ValueError, match="read-only"):
        largest(writes, 20, key=0)
