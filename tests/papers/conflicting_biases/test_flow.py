"""The flow in closed form against a stiff integrator, and Theorem B.1."""

from itertools import pairwise

import numpy as np
import pytest
from cases.draws import SEED, example
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from steppe.check import ArgumentError
from steppe.papers.conflicting_biases.theory.flow import excess_rate, flow_end, flow_limit, flow_path
from steppe.papers.conflicting_biases.theory.manifold import Manifold, least_norm


@settings(max_examples=12)
@given(seed=SEED, depth=st.integers(1, 5))
def test_the_limit_is_that_of_an_integrator(seed, depth):
    x, y = example(seed, d=3)
    w0 = np.random.default_rng(seed).uniform(0.3, 1.0, 3)
    m = Manifold(x, y, depth)
    if depth > 1 and (flow_limit(x, y, w0, depth=depth) < 1e-2).any():
        return  # a weight that vanishes slowly: the integrator would need too long
    run = solve_ivp(lambda t, w: -m.gradient(w), (0, 2000), w0, method="LSODA", rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(run.y[:, -1], flow_limit(x, y, w0, depth=depth), rtol=1e-6, atol=1e-7)


@settings(max_examples=20)
@given(seed=SEED, depth=st.integers(1, 5))
def test_the_path_is_tangent_to_the_gradient(seed, depth):
    """dw/dτ = L x ⊙ w^{L−1} by central differences, whose error is of the order of the step squared."""
    x, y = example(seed, d=3)
    w0 = np.random.default_rng(seed).uniform(0.3, 1.0, 3)
    tau = flow_end(x, y, w0, depth=depth)
    h = 1e-5 * (abs(tau) + 1e-3)
    w = flow_path(x, w0, [tau / 2 - h, tau / 2, tau / 2 + h], depth=depth)
    expected = depth * x * w[1] ** (depth - 1)
    np.testing.assert_allclose((w[2] - w[0]) / (2 * h), expected, rtol=1e-6, atol=1e-7)
    assert float(Manifold(x, y, depth).residual(flow_limit(x, y, w0, depth=depth))) == pytest.approx(0, abs=1e-9)


@settings(max_examples=20)
@given(SEED)
def test_theorem_b1_for_any_signs(seed):
    """‖w_∞²‖₁ falls to its least value as α → 0."""
    x, y = example(seed, d=3)
    x, y = (x, y) if y > 0 else (-x, -y)
    least = least_norm(x, y).value
    norms = [float(np.sum(flow_limit(x, y, a) ** 2)) for a in (1e-1, 1e-2, 1e-3, 1e-4)]
    ratio = np.unique(x)[-2] / x.max() if len(np.unique(x)) > 1 else -np.inf
    assert norms[-1] - least <= 20 * (1e-4) ** (2 * (1 - max(ratio, 0))) * (1 + y) + 1e-9
    assert all(a >= b - 1e-9 for a, b in pairwise(norms))


def test_the_rate_of_the_excess():
    x, y = np.array([1.0, 0.7, 0.2]), 0.9
    a, b = (float(flow_limit(x, y, alpha) ** 2 @ (1 - x)) for alpha in (1e-7, 1e-9))
    # The second term of the expansion is smaller by α^{1.6 − 0.6}.
    assert np.log(a / b) / np.log(100) == pytest.approx(excess_rate(x), rel=1e-4)


def test_wrong_arguments_are_named():
    with pytest.raises(ArgumentError, match="w0 must be positive"):
        flow_limit([1.0], 1.0, 0.0)
    with pytest.raises(ArgumentError, match="two different entries"):
        excess_rate([1.0, 1.0])
    with pytest.raises(ArgumentError, match="y must be of the sign"):
        flow_limit([1.0], -1.0, 0.1)
