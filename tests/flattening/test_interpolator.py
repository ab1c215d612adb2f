"""The flattest interpolator by its dual, by HiGHS and by cvxpy; a random search finds nothing flatter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from steppe.activations import leaky, quadratic, rectifier, relu_power
from steppe.check import ArgumentError
from steppe.flattening import NoInterpolatorError, features, flattest_interpolator

FAMILY = [rectifier, leaky(0.1), relu_power(1.3), quadratic, relu_power(3)]


def program(sigma, seed, n=6, m=15, d=4):
    rng = np.random.default_rng(seed)
    W, x = rng.normal(size=(m, d)), rng.normal(size=(n, d))
    return *features(W, x, sigma), rng.normal(size=n)


def bound(phi, y, q, p, tau, multiplier):
    """What a multiplier proves, in all coordinates of y: y·λ − τ‖λ‖ − Σ max_a (s a − q |a|^p)."""
    s, used = np.abs(phi.T @ multiplier), q > 0
    if p == 1:
        assert (s[used] <= q[used]).all()
        conjugate = 0.0
    else:
        a = (s[used] / (p * q[used])) ** (1 / (p - 1))
        conjugate = np.sum(s[used] * a - q[used] * a**p)
    return y @ multiplier - tau * np.linalg.norm(multiplier) - conjugate


@given(
    st.integers(0, 10_000), st.sampled_from(FAMILY), st.sampled_from([0.0, 1e-6, 0.1, 0.7, 0.99]),
    st.sampled_from([1e-8, 1e-4]), st.booleans(),
)  # fmt: skip
@settings(max_examples=60)
def test_certified_and_not_beaten(seed, sigma, share, rtol, repeated):
    """Also without full rank: repeated examples with different labels, which only a tube can hold."""
    phi, q, p, y = program(sigma, seed)
    if repeated and share >= 0.7:
        phi = phi[[0, 1, 2, 3, 0, 1]]
    tau = share * np.linalg.norm(y)
    try:
        best = flattest_interpolator(phi, y, q, p, tau=tau, rtol=rtol)
    except NoInterpolatorError:
        assert tau < np.linalg.norm(y - phi @ np.linalg.lstsq(phi, y)[0])
        return
    assert 0 <= best.gap <= 1.01 * rtol
    # In the tube; without one, fitted up to rounding, which grows with the size of the terms that cancel.
    size = np.linalg.norm(np.abs(phi) @ np.abs(best.a))
    assert best.residual <= tau if share else best.residual <= 1e-10 * size
    proven = bound(phi, y, q, p, tau, best.multiplier)
    assert proven == pytest.approx(best.lower, rel=1e-9)
    assert proven <= best.flatness * (1 + 1e-10)
    rng = np.random.default_rng(seed)
    kernel = np.linalg.svd(phi)[2][np.linalg.matrix_rank(phi) :]
    for step in (1e-3, 0.1, 1.0):
        other = best.a + step * kernel.T @ rng.normal(size=len(kernel))
        assert q @ np.abs(other) ** p >= best.lower * (1 - 1e-12)


@pytest.mark.parametrize("sigma", FAMILY[:2], ids=str)
def test_degree_one_is_a_linear_program(sigma):
    phi, q, p, y = program(sigma, 1, n=20, m=60, d=8)
    expected = linprog(np.concatenate([q, q]), A_eq=np.hstack([phi, -phi]), b_eq=y, method="highs").fun
    # HiGHS stops at 1e-7.
    assert flattest_interpolator(phi, y, q, p).flatness == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("tau", [0.0, 0.5])
@pytest.mark.parametrize("sigma", [leaky(0.1), quadratic], ids=str)
def test_cvxpy_finds_the_same(sigma, tau):
    cp = pytest.importorskip("cvxpy")
    phi, q, p, y = program(sigma, 2)
    a = cp.Variable(len(q))
    cost = q @ (cp.abs(a) if p == 1 else cp.power(cp.abs(a), p))
    expected = cp.Problem(cp.Minimize(cost), [cp.norm(phi @ a - y) <= tau]).solve(solver=cp.CLARABEL)
    # Clarabel stops at 1e-8, and the cone of the power p loses some digits.
    assert flattest_interpolator(phi, y, q, p, tau=tau).flatness == pytest.approx(expected, rel=1e-5)


def test_one_example_by_hand():
    """p = 4/3, one example φ·a = y: a_k ∝ (φ_k/q_k)³, flatness |y|^p / (Σ φ_k⁴/q_k³)^{1/3} by Hölder."""
    phi, q, y = np.array([[1.0, 2.0, 0.5]]), np.array([1.0, 3.0, 0.2]), np.array([-2.0])
    best = flattest_interpolator(phi, y, q, 4 / 3)
    assert best.flatness == pytest.approx(2 ** (4 / 3) / np.sum(phi[0] ** 4 / q**3) ** (1 / 3), rel=1e-12)
    np.testing.assert_allclose(best.a / best.a[0], (phi[0] / q) ** 3 / (phi[0, 0] / q[0]) ** 3, rtol=1e-9)


def test_what_is_within_tau_costs_nothing():
    phi, q, p, y = program(rectifier, 0)
    best = flattest_interpolator(phi, y, q, p, tau=1.01 * np.linalg.norm(y))
    assert (best.flatness, best.gap) == (0.0, 0.0)
    assert not best.a.any()


@pytest.mark.parametrize("sigma", [rectifier, quadratic], ids=str)
def test_no_interpolator(sigma):
    phi, q, p, y = program(sigma, 0, n=6, m=3)
    away = np.linalg.norm(y - phi @ np.linalg.lstsq(phi, y)[0])
    with pytest.raises(NoInterpolatorError, match="no interpolator exists: 3 neurons span"):
        flattest_interpolator(phi, y, q, p)
    with pytest.raises(NoInterpolatorError, match="no outer weights come within"):
        flattest_interpolator(phi, y, q, p, tau=0.9 * away)
    best = flattest_interpolator(phi, y, q, p, tau=1.1 * away)
    assert best.residual <= 1.1 * away * (1 + 1e-12)
    assert best.gap <= 1e-7


def test_repeated_examples_and_dead_neurons():
    """Φ without full rank, y in its range, and a column of zeros with q = 0."""
    phi, q, p, y = program(rectifier, 4)
    once = flattest_interpolator(phi, y, q, p)
    doubled = np.column_stack([np.vstack([phi, phi]), np.zeros(12)])
    best = flattest_interpolator(doubled, np.tile(y, 2), np.append(q, 0.0), p)
    assert best.flatness == pytest.approx(once.flatness, rel=1e-7)
    assert best.a[-1] == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: flattest_interpolator([[1.0]], [1.0], [1.0], 3.0), "p must be from 1 to 2"),
        (lambda: flattest_interpolator([[1.0]], [1.0], [-1.0], 1.0), "q must be > 0"),
        (lambda: flattest_interpolator([1.0], [1.0], [1.0], 1.0), "phi must be of shape"),
        (lambda: flattest_interpolator([[1.0]], [1.0, 2.0], [1.0], 1.0), "one label for each example"),
        (lambda: flattest_interpolator([[1.0]], [1.0], [1.0], 1.0, tau=-1.0), "tau must be"),
        (lambda: features([[1.0, 2.0]], [[1.0]], rectifier), "as wide as x"),
        (lambda: features([[1.0]], [[1.0]], rectifier, b=[1.0, 2.0]), "b must be"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
