import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases.planted import SPECTRA, Counted, plant, spectrum
from matfree import stochtrace

from steppe.check import ArgumentError
from steppe.estimate import Accuracy
from steppe.linalg import dense, hutchinson, hutchpp, rademacher, sphere, xtrace
from steppe.linalg._probes import Probes, fewest, looks, multiplier
from steppe.linalg._trace import Compressed

ESTIMATORS = [hutchinson, hutchpp, xtrace]
EPS = np.finfo(float).eps


def covers(e, truth):
    # An exact result is exact up to the rounding of a sum of p numbers.
    slack = 1e-12 * max(abs(truth), abs(e.value)) if e.is_exact else 0.0
    return e.lower - slack <= truth <= e.upper + slack


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("p", [1, 2, 5, 100])
def test_covers_and_is_as_narrow_as_asked(estimator, name, p):
    A = plant(spectrum(name, p), p)
    matvec = Counted(A)
    e = estimator(matvec, p, accuracy=Accuracy(0.3), key=p)
    assert covers(e, dense.trace(A).value)
    assert e.matvecs == matvec.calls
    assert e.converged == (e.upper - e.lower <= 0.3 * abs(e.value))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("p", [1, 2, 9])
def test_exact_when_the_probes_exhaust_the_dimension(estimator, p):
    A = plant(np.arange(1.0, p + 1), 0)
    e = estimator(lambda v: A @ v, p, key=0)
    assert e.is_exact
    assert e.confidence == 1.0
    assert e.matvecs == p
    assert e.value == pytest.approx(p * (p + 1) / 2, rel=p * EPS)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_stopping_early_is_said(estimator):
    A = plant(spectrum("uniform", 200), 0)
    e = estimator(lambda v: A @ v, 200, accuracy=Accuracy(1e-3, max_matvecs=60), key=0)
    assert not e.converged
    assert e.matvecs <= 60
    assert covers(e, np.trace(A))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_same_key_same_estimate(estimator):
    A = plant(spectrum("decaying", 80), 0)
    assert estimator(lambda v: A @ v, 80, key=5) == estimator(lambda v: A @ v, 80, key=5)


def test_sketches_pay_on_a_decaying_spectrum():
    A = plant(0.8 ** np.arange(400.0), 0)
    products = {
        f: f(lambda v: A @ v, 400, accuracy=Accuracy(0.02, max_matvecs=10**4), key=0).matvecs for f in ESTIMATORS
    }
    assert products[hutchpp] < products[hutchinson] / 2
    assert products[xtrace] < products[hutchinson] / 2


@pytest.mark.parametrize("estimator", [hutchpp, xtrace])
def test_low_rank_is_exact_up_to_rounding(estimator):
    A = plant(np.concatenate([np.zeros(195), [1.0, 2.0, 3.0, 4.0, 5.0]]), 0)
    e = estimator(lambda v: A @ v, 200, accuracy=Accuracy(1e-6), key=0)
    assert e.upper - e.lower <= 1e-10
    assert covers(e, 15.0)


def test_spread_of_the_probes_is_the_variance():
    """Var zᵀAz = 2 Σ_{i≠j} A_ij², from the probes without knowing A."""
    A = plant(spectrum("uniform", 30), 0)
    exact = 2.0 * ((A**2).sum() - (np.diag(A) ** 2).sum())
    probes, rng, values = Probes(30), np.random.default_rng(0), []
    for _ in range(4000):
        z = rademacher(30, rng)
        probes.add(z, A @ z)
        values.append(z @ A @ z)
    # Relative errors: √(2/n) for the sample variance of near-normal values, less for ours.
    assert np.var(values) == pytest.approx(exact, rel=4 * np.sqrt(2 / 4000))
    assert probes.stderr**2 * 4000 == pytest.approx(exact, rel=4 * np.sqrt(2 / 4000))
    assert probes.trace == pytest.approx(np.mean(values), rel=1e-10)


def test_multiplier_calibrates_rank_one():
    """λχ² probes, the farthest from normal: failures are at most the stated probability, and not far below it."""
    rng, n, delta, trials = np.random.default_rng(0), 12, 0.05, 20_000
    y = rng.chisquare(n, trials) / n
    failed = np.mean(np.abs(1 - y) > multiplier(n, delta) * np.sqrt(2 * y / n))
    assert failed <= delta + 4 * np.sqrt(delta / trials)
    assert failed >= 0.3 * delta
    assert multiplier(10**6, delta) == pytest.approx(1.96, abs=0.01)


def test_looks_spend_no_more_than_delta():
    for keep in (0.0, 1 / 3, 0.5):
        seen = list(looks(10, 10_000, 0.01, keep=keep))
        assert sum(d for _, d in seen) <= 0.01 * (1 + 1e-12)
        assert seen[-1][0] == 10_000
    assert fewest(0.01) == 10


def test_leave_one_out_equals_its_definition_and_matfree():
    p, n = 30, 6
    A, rng = plant(spectrum("decaying", p), 0), np.random.default_rng(0)
    Om = np.stack([sphere(p, rng) for _ in range(n)], axis=1)
    Q, R = np.linalg.qr(A @ Om)
    Z = A @ Q
    whole = Compressed(p, R, Q.T @ Z, Q.T @ Om, Z.T @ Om, (Om**2).sum(axis=0))
    direct = []
    for i in range(n):
        Qi = np.linalg.qr(A @ np.delete(Om, i, axis=1))[0]
        rest = Om[:, i] - Qi @ (Qi.T @ Om[:, i])
        direct.append(np.trace(Qi.T @ A @ Qi) + (p - n + 1) * (rest @ A @ rest) / (rest @ rest))
    # A sketch of a decaying spectrum has condition 1e3 or so.
    np.testing.assert_allclose(whole.estimates(), direct, rtol=1e4 * EPS)
    with jax.enable_x64(True), jax.numpy_rank_promotion("allow"):
        integrand = stochtrace.leave_one_out_xtrace(apply_resphering=True)
        theirs = integrand(lambda v: jnp.asarray(A) @ v, jnp.asarray(Om.T))
    np.testing.assert_allclose(whole.estimates(), np.asarray(theirs), rtol=1e5 * EPS)
    fewer = np.linalg.qr(A @ Om[:, 2:])
    small = Compressed(
        p, fewer[1], fewer[0].T @ A @ fewer[0], fewer[0].T @ Om[:, 2:], fewer[0].T @ A @ Om[:, 2:], whole.lengths[2:]
    )
    np.testing.assert_allclose(whole.without(np.array([0, 1])).estimates(), small.estimates(), rtol=1e5 * EPS)


def test_no_more_probes_than_there_is_room_for():
    """A probe needs four float64 vectors; an interval needs a few probes in any case."""
    u = np.random.default_rng(0).normal(size=2000)

    def product(v):
        return u * v

    roomy, tight, tightest = (
        xtrace(product, 2000, accuracy=Accuracy(1e-6, max_matvecs=200), memory=m, key=0)
        for m in (None, 32.0 * 2000 * 60, 1.0)
    )
    assert (roomy.matvecs, tight.matvecs) == (200, 120)
    assert tightest.matvecs < 60
    assert not tightest.converged
    assert tightest.lower <= u.sum() <= tightest.upper
    with pytest.raises(ArgumentError, match="memory must be a finite number > 0"):
        xtrace(product, 2000, memory=0, key=0)
