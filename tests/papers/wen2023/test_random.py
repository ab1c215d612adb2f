"""Random sizes, points, labels, depths and ε by hypothesis; gradient norms by hand, a route beside autodiff."""

import numpy as np
import pytest
from cases import theory_nets as nets
from hypothesis import given, settings
from hypothesis import strategies as st

from steppe.flattening import memorising
from steppe.papers.wen2023.theory import bounds


@st.composite
def training_sets(draw):
    """Corners of a hypercube, a sphere, or an ellipsoid off the origin; labels over five decades, some of them 0."""
    d, n = draw(st.integers(2, 12)), draw(st.integers(1, 16))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["hypercube", "sphere", "ellipsoid"]))
    x = np.sign(rng.normal(size=(n, d)))  # with repeats where n is large for d
    if kind != "hypercube":
        x = rng.normal(size=(n, d))
        x *= 10 ** draw(st.floats(-2, 2)) / np.linalg.norm(x, axis=1, keepdims=True)
    if kind == "ellipsoid":
        x = x * np.linspace(1, 2, d) + rng.normal(size=d)
    # A label that is a function of x, so that repeats agree.
    y = np.sin(1e3 * x @ np.arange(1, d + 1)) * 10.0 ** np.floor(5 * np.abs(np.cos(7 * x.sum(axis=1))) - 3)
    return x, np.where(np.abs(y) < 2e-3, 0.0, y)


def assert_attained(params, x, y, f, per_example, bound):
    """per_example = ‖∇f(xᵢ)‖², so that the trace is twice its mean (Lemma 4.1)."""
    tolerance = nets.rounding(params, x)
    if tolerance > 1e-3:
        return  # two points drawn within 1e-6 of one another: nothing is left after rounding
    assert np.abs(f - y).max() <= tolerance * max(np.abs(y).max(), 1e-300)
    assert 2 * np.mean(per_example) == pytest.approx(bound, rel=8 * tolerance, abs=1e-300)


@settings(deadline=None, max_examples=150)
@given(training_sets(), st.integers(2, 7))
def test_depth(data, depth):
    """‖∇f‖² = Σ_j ‖g_j‖²‖a_{j−1}‖², g the backward pass (appendix A.3.1)."""
    x, y = data
    params = memorising.deep(x, y, depth)
    activations = [np.hstack([x, np.ones((len(x), 1))]), nets.hidden(params, x)]
    for layer in range(2, depth):
        activations.append(nets.relu(activations[-1] @ params[f"W{layer}"].T))
    last = params[f"W{depth}"]
    backward, squares = np.tile(last, (len(x), 1)), np.sum(activations[-1] ** 2, axis=1)
    for layer in range(depth - 1, 0, -1):
        backward = backward * (activations[layer] > 0)
        squares = squares + np.sum(backward**2, axis=1) * np.sum(activations[layer - 1] ** 2, axis=1)
        if layer > 1:
            backward = backward @ params[f"W{layer}"]
    assert_attained(params, x, y, activations[-1] @ last, squares, bounds.deep_bias(x, y, depth))


@settings(deadline=None, max_examples=150)
@given(training_sets(), st.floats(-3, 3))
def test_sim_ln(data, log_eps):
    """∂f/∂W₂ = a/s, ∂f/∂a = (W₂ − f a/s)/s where ‖a‖ = s > ε, and W₂/ε below."""
    (x, y), eps = data, 10**log_eps
    params = memorising.sim_ln(x, y, eps)
    a = nets.hidden(params, x)
    norm = np.linalg.norm(a, axis=1, keepdims=True)
    s = np.maximum(norm, eps)
    f = (a @ params["W2"])[:, None] / s
    back = (params["W2"] - (norm > eps) * f * a / s) / s * (a > 0)
    squares = np.sum((a / s) ** 2, axis=1) + np.sum(back**2, axis=1) * (np.sum(x**2, axis=1) + 1)
    assert_attained(params, x, y, f[:, 0], squares, bounds.sim_ln(x, y, eps))
