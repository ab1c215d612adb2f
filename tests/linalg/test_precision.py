"""Products in float32: the interval includes their rounding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases.planted import plant, spectrum

from steppe.estimate import Accuracy
from steppe.linalg import Tracker, hutchinson, in_precision, largest, top_eigenpairs, xtrace


@pytest.mark.parametrize("name", ["outliers", "uniform", "clustered", "one huge outlier", "identity"])
def test_float32_products_are_covered(name):
    p = 120
    truth = spectrum(name, p)[-1]
    for seed in range(10):
        A = plant(spectrum(name, p), seed).astype(np.float32)
        e = largest(lambda v, A=A: A @ v.astype(np.float32), p, key=seed).estimate
        assert e.converged
        # A itself is rounded to float32, by at most ulp/2 √p of its norm.
        slack = 6e-8 * np.sqrt(p) * np.abs(spectrum(name, p)).max()
        assert e.lower - slack <= truth <= e.upper + slack
        assert e.upper - e.lower >= 1e-6 * abs(truth)  # no more digits than the product has


def test_a_jitted_float32_function_goes_in_as_it_is():
    A = jnp.asarray(plant(spectrum("outliers", 50), 0), dtype=jnp.float32)
    matvec = jax.jit(lambda v: A @ v)
    e = largest(matvec, 50, key=0).estimate
    assert e.lower <= 1.0 + 1e-6
    assert e.upper >= 1.0 - 1e-6
    assert e.converged
    trace = hutchinson(matvec, 50, accuracy=Accuracy(0.5), key=0)
    for estimate in (*top_eigenpairs(matvec, 50, 2, key=0).estimates, trace):
        assert estimate.converged
    assert Tracker(50, key=0).measure(matvec)[0].value == pytest.approx(1.0, rel=1e-3)


def test_in_precision_converts_both_ways():
    with jax.enable_x64(True):
        A = jnp.eye(4, dtype=jnp.float32)

        def strict(v):
            assert v.dtype == jnp.float32
            return A @ v

        assert largest(in_precision(strict, np.float32), 4, key=0).estimate.value == pytest.approx(1.0, rel=1e-6)


def test_a_stated_precision_widens_the_interval():
    d = np.linspace(0.0, 1.0, 30)
    narrow = largest(lambda v: d * v, 30, key=0).estimate
    wide = largest(lambda v: d * v, 30, precision=1e-5, key=0).estimate
    assert narrow.value - narrow.lower <= 1e-12
    assert wide.value - wide.lower >= 1e-5


def test_noise_that_shows_as_asymmetry_is_in_the_interval():
    """A product that is less exact than its dtype shows ⟨u, Av⟩ ≠ ⟨Au, v⟩, which widens the interval."""
    d, rng = np.linspace(0.0, 1.0, 200), np.random.default_rng(0)

    def noisy(v):
        return d * v + 1e-6 * rng.standard_normal(200) / np.sqrt(200)

    e = largest(noisy, 200, key=0).estimate
    assert e.value - e.lower >= 1e-7
    assert e.lower <= 1.0 <= e.upper


def test_a_tail_below_the_rounding_of_low_rank():
    """Rank 3 and a diagonal below the rounding of float32: XTrace saw rank 3 and claimed to be exact, off by 1e-4."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        U = np.linalg.qr(rng.standard_normal((3000, 3)))[0].astype(np.float32)
        D = (1e-7 * rng.chisquare(1, 3000)).astype(np.float32)
        e = xtrace(lambda v, U=U, D=D: U @ (U.T @ v) + D * v, 3000, key=seed)
        assert e.lower <= (U.astype(float) ** 2).sum() + D.astype(float).sum() <= e.upper
        assert e.confidence < 1
