"""One weight: the cubic map, its orbit of period two, its thresholds. u ⊙ v: trace and flattest interpolator."""

import jax
import numpy as np
import pytest
from cases.draws import SEED
from hypothesis import given, settings
from hypothesis import strategies as st

from steppe.check import ArgumentError
from steppe.networks import two_factor_problem
from steppe.papers.conflicting_biases.theory.manifold import Manifold
from steppe.papers.conflicting_biases.theory.other_models import (
    EDGE,
    ESCAPE,
    FOUR,
    SIGNS,
    conserved,
    flattest,
    lyapunov,
    orbits,
    step,
    trace,
    two_cycle,
)

HESSIAN = jax.jit(lambda p, w: jax.hessian(p.loss)(w))


@given(st.floats(0.1, 3.0), st.floats(0.1, 3.0), st.floats(0.01, 0.5), st.floats(-2.0, 2.0))
def test_the_map_is_gradient_descent(x, y, lr, w):
    stepped = w - lr * float(Manifold([x], y).gradient([w])[0])
    scale = np.sqrt(x / y)
    assert float(step(w * scale, 2 * lr * x * y)) == pytest.approx(stepped * scale, rel=1e-9, abs=1e-9)


def two_cycle_multiplier(a):
    """The derivative of two steps along the orbit of period 2: within ±1 iff 1 < a < √5 − 1."""
    return 9 - 2 * (1 + np.asarray(a)) ** 2


def bound(a):
    """If a ≤ 2, an orbit from |z| below this stays below it; beyond it every start diverges."""
    return np.sqrt(1 + 2 / a)


@given(st.floats(1.001, 2.0))
def test_two_steps_come_back(a):
    z1, z2 = two_cycle(a)
    assert z1 > 1 > z2
    assert float(step(z1, a)) == pytest.approx(z2, rel=1e-9)
    assert float(step(z2, a)) == pytest.approx(z1, rel=1e-9)
    h = 1e-6
    slope = (step(step(z1 + h, a), a) - step(step(z1 - h, a), a)) / (2 * h)
    assert float(slope) == pytest.approx(float(two_cycle_multiplier(a)), abs=1e-4)


def test_thresholds_are_where_the_multipliers_are():
    assert 1 - 2 * EDGE == -1  # the slope 1 + a − 3a at z = 1
    np.testing.assert_allclose(two_cycle_multiplier([EDGE, FOUR]), [1, -1], atol=1e-14)
    a = SIGNS
    top = np.sqrt((1 + a) / (3 * a))
    assert float(step(step(top, a), a)) == pytest.approx(0, abs=1e-14)
    a = ESCAPE
    assert float(step(np.sqrt((1 + a) / (3 * a)), a)) == pytest.approx(bound(a), rel=1e-14)


def test_orbits_settle_double_and_escape():
    a = np.array([0.9, 1.1, 1.25, 1.65, 2.1])
    z = orbits(a, burn=3000, keep=64)
    np.testing.assert_allclose(z[0], 1, rtol=1e-12)
    np.testing.assert_allclose(np.sort(z[1, -2:]), sorted(two_cycle(1.1)), rtol=1e-10)
    assert [len(np.unique(row.round(6))) for row in z[:3]] == [1, 2, 4]
    assert np.isnan(z[4]).all()
    assert np.abs(z[3]).max() <= bound(1.65)
    exponents = lyapunov(a[:4], burn=500, keep=2000)
    assert exponents[0] == pytest.approx(np.log(0.8), rel=1e-6)  # |1 − 2a| at the minimum
    assert exponents[1] == pytest.approx(0.5 * np.log(abs(float(two_cycle_multiplier(1.1)))), rel=1e-3)
    assert exponents[2] < 0 < exponents[3]


def test_below_the_edge_there_is_no_cycle():
    with pytest.raises(ArgumentError, match="a must be"):
        two_cycle(0.9)


def test_the_last_bounded_map_triples_angles():
    """At a = 2, z = √2 cos φ goes to −√2 cos 3φ: its exponent is ln 3."""
    angle = np.linspace(0, 3, 7)
    np.testing.assert_allclose(step(np.sqrt(2) * np.cos(angle), 2.0), -np.sqrt(2) * np.cos(3 * angle), atol=1e-14)
    # An average over 20,000 chaotic steps, one hair below a = 2 so that rounding does not let it escape.
    assert float(lyapunov(np.array([2 - 1e-7]), keep=20_000)[0]) == pytest.approx(np.log(3), rel=0.03)


# The form ⟨u ⊙ v, x⟩ on n examples.


def data(seed, n=3, d=5):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return rng, x, x @ rng.normal(size=d)


@settings(max_examples=10)
@given(SEED)
def test_trace_by_autodiff_anywhere(seed):
    rng, x, y = data(seed)
    u, v = rng.normal(size=(2, 5))
    p = two_factor_problem(x, y, u=u, v=v)
    assert float(trace(x, u, v)) == pytest.approx(float(np.trace(HESSIAN(p, p.w0))), rel=1e-11)


@settings(max_examples=25)
@given(SEED)
def test_no_interpolator_is_flatter(seed):
    rng, x, y = data(seed)
    best = flattest(x, y)
    np.testing.assert_allclose(x @ best.beta, y, rtol=1e-8, atol=1e-9)
    assert best.lower == pytest.approx(best.trace, rel=1e-9)
    assert (np.abs(best.beta) > 1e-9).sum() <= len(y)  # a vertex: no more weights than examples
    root = np.sqrt(np.abs(best.beta))
    assert float(trace(x, root, np.sign(best.beta) * root)) == pytest.approx(best.trace, rel=1e-9)
    null = np.linalg.svd(x)[2][len(y) :]
    other = best.beta + rng.normal(size=(20, len(null))) @ null
    scale = np.exp(rng.normal(size=other.shape))
    size = np.sqrt(np.abs(other))
    assert (trace(x, size * scale, np.sign(other) * size / scale) >= best.trace * (1 - 1e-9)).all()


def test_what_no_weights_fit_is_refused():
    with pytest.raises(ArgumentError, match="y must be"):
        flattest([[1.0, 0.0], [1.0, 0.0]], [1.0, 2.0])
    np.testing.assert_array_equal(conserved([2.0, 1.0], [1.0, 1.0]), [3, 0])
