"""The spectral radius that the flow's steps rest on: planted spectra, small spaces included."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steppe.dynamics._flow.radius import MOST_PRODUCTS, SETTLED, measure, unmeasured


def planted(spectrum, seed):
    """A symmetric matrix with this spectrum, and a radius not measured yet."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((len(spectrum), len(spectrum))))
    return Q @ np.diag(spectrum) @ Q.T, unmeasured(jnp.asarray(rng.standard_normal(len(spectrum))))


@jax.jit
def look(H, last):
    w = jnp.zeros(len(H))
    return measure(lambda w: H @ w, w, jnp.zeros(()), last.vector, last)[0]


# Few sizes, since each is compiled: below, at and above the most products.
SIZES = st.sampled_from([1, 2, 5, MOST_PRODUCTS, 2 * MOST_PRODUCTS])


@given(SIZES.flatmap(lambda n: st.lists(st.floats(-1e3, 1e6), min_size=n, max_size=n)), st.integers(0, 1000))
def test_never_above_the_truth(spectrum, seed):
    """A Ritz value is a lower bound, whatever the size of the space: a direction counted twice would break that. The
    slack is rounding: products and sums of so many terms."""
    H, last = planted(spectrum, seed)
    truth = np.abs(np.linalg.eigvalsh(H)).max()
    for _ in range(3):
        last = look(H, last)
        assert float(last.value) <= truth * (1 + 1e-12) + 1e-300


@pytest.mark.parametrize("n", [1, 2, 3, 5, 11, 12, 13, 100])
def test_a_leader_that_stands_out_is_found(n):
    """Its error is the square of the angle left, which Lanczos with a gap of a factor ten closes in a few products."""
    H, last = planted([1.0, *np.linspace(0, 0.1, n - 1)], seed=n)
    assert float(look(H, last).value) >= 1 - SETTLED


@pytest.mark.parametrize("kappa", [1e2, 1e6])
def test_two_directions_are_not_counted_twelve_times(kappa):
    """Once the products of a plane were orthogonalised once only, and rounding became a direction of its own: the
    radius was up to eleven times too large, and a flow took three times the gradients."""
    H, last = np.diag([1.0, kappa]), unmeasured(jnp.array([1.0, 1e-9]))
    for _ in range(20):
        last = look(H, last)
        assert float(last.value) == pytest.approx(kappa, rel=SETTLED)
