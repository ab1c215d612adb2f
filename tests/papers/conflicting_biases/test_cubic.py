"""One weight: the cubic map, its exact orbit of period two, its thresholds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steppe.check import ArgumentError
from steppe.papers.conflicting_biases.theory import Manifold
from steppe.papers.conflicting_biases.theory import kkt as cubic


@given(st.floats(0.1, 3.0), st.floats(0.1, 3.0), st.floats(0.01, 0.5), st.floats(-2.0, 2.0))
def test_the_map_is_gradient_descent(x, y, lr, w):
    stepped = w - lr * float(Manifold([x], y).gradient([w])[0])
    scale = np.sqrt(x / y)
    assert float(cubic.step(w * scale, 2 * lr * x * y)) == pytest.approx(stepped * scale, rel=1e-9, abs=1e-9)


@given(st.floats(1.001, 2.0))
def test_two_steps_come_back(a):
    z1, z2 = cubic.two_cycle(a)
    assert z1 > 1 > z2
    assert float(cubic.step(z1, a)) == pytest.approx(z2, rel=1e-9)
    assert float(cubic.step(z2, a)) == pytest.approx(z1, rel=1e-9)
    h = 1e-6
    slope = (cubic.step(cubic.step(z1 + h, a), a) - cubic.step(cubic.step(z1 - h, a), a)) / (2 * h)
    assert float(slope) == pytest.approx(float(cubic.two_cycle_multiplier(a)), abs=1e-4)


def test_thresholds_are_where_the_multipliers_are():
    assert 1 - 2 * cubic.EDGE == -1  # the slope 1 + a − 3a at z = 1
    np.testing.assert_allclose(cubic.two_cycle_multiplier([cubic.EDGE, cubic.FOUR]), [1, -1], atol=1e-14)
    a = cubic.SIGNS
    top = np.sqrt((1 + a) / (3 * a))
    assert float(cubic.step(cubic.step(top, a), a)) == pytest.approx(0, abs=1e-14)
    a = cubic.ESCAPE
    assert float(cubic.step(np.sqrt((1 + a) / (3 * a)), a)) == pytest.approx(cubic.bound(a), rel=1e-14)


def test_orbits_settle_double_and_escape():
    a = np.array([0.9, 1.1, 1.25, 1.65, 2.1])
    z = cubic.orbits(a, burn=3000, keep=64)
    np.testing.assert_allclose(z[0], 1, rtol=1e-12)
    np.testing.assert_allclose(np.sort(z[1, -2:]), sorted(cubic.two_cycle(1.1)), rtol=1e-10)
    assert [len(np.unique(row.round(6))) for row in z[:3]] == [1, 2, 4]
    assert np.isnan(z[4]).all()
    assert np.abs(z[3]).max() <= cubic.bound(1.65)
    exponents = cubic.lyapunov(a[:4], burn=500, keep=2000)
    assert exponents[0] == pytest.approx(np.log(0.8), rel=1e-6)  # |1 − 2a| at the minimum
    assert exponents[1] == pytest.approx(0.5 * np.log(abs(float(cubic.two_cycle_multiplier(1.1)))), rel=1e-3)
    assert exponents[2] < 0 < exponents[3]


def test_below_the_edge_there_is_no_cycle():
    with pytest.raises(ArgumentError, match="a must be"):
        cubic.two_cycle(0.9)


def test_the_last_bounded_map_triples_angles():
    """At a = 2, z = √2 cos φ goes to −√2 cos 3φ: its exponent is ln 3."""
    angle = np.linspace(0, 3, 7)
    np.testing.assert_allclose(cubic.step(np.sqrt(2) * np.cos(angle), 2.0), -np.sqrt(2) * np.cos(3 * angle), atol=1e-14)
    # An average over 20,000 chaotic steps, one hair below a = 2 so that rounding does not let it escape.
    assert float(cubic.lyapunov(np.array([2 - 1e-7]), keep=20_000)[0]) == pytest.approx(np.log(3), rel=0.03)
