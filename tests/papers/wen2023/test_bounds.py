"""Every lower bound holds for every interpolator: random networks, relabelled by what they output."""

import numpy as np
import pytest
from cases import theory_nets as nets
from hypothesis import given, settings
from hypothesis import strategies as st

from steppe.check import ArgumentError
from steppe.papers.wen2023.theory import bounds

N, D_IN, WIDTH = 6, 3, 5
SEED = st.integers(0, 2**32 - 1)
SCALE = st.floats(0.05, 20.0)
# A bound may be attained, so an interpolator may sit on it but for rounding.
SLACK = 1 + 1e-12


def random_net(seed, scale, depth=2, bias=True):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, D_IN))
    params = {"W1": rng.normal(size=(WIDTH, D_IN))}
    if bias:
        params["b1"] = rng.normal(size=WIDTH)
    for layer in range(2, depth):
        params[f"W{layer}"] = rng.normal(size=(WIDTH, WIDTH))
    params[f"W{depth}"] = rng.normal(size=WIDTH)
    # One layer's scale against the others' is what the bounds leave free.
    params["W1"] *= scale
    return x, params


@settings(deadline=None, max_examples=40)
@given(SEED, SCALE)
def test_two_layer_bias_holds(seed, scale):
    x, params = random_net(seed, scale)
    assert nets.gauss_newton(nets.mlp, params, x) * SLACK >= bounds.two_layer_bias(x, nets.predict(nets.mlp, params, x))


@settings(deadline=None, max_examples=40)
@given(SEED, SCALE)
def test_two_layer_no_bias_holds(seed, scale):
    x, params = random_net(seed, scale, bias=False)
    assert nets.gauss_newton(nets.mlp, params, x) * SLACK >= bounds.two_layer_no_bias(
        x, nets.predict(nets.mlp, params, x)
    )


@pytest.mark.parametrize("depth", [2, 3, 4])
@settings(deadline=None, max_examples=20)
@given(seed=SEED, scale=SCALE)
def test_deep_bias_holds(depth, seed, scale):
    x, params = random_net(seed, scale, depth)
    y = nets.predict(nets.mlp, params, x)
    assert nets.gauss_newton(nets.mlp, params, x) * SLACK >= bounds.deep_bias(x, y, depth)


@pytest.mark.parametrize("eps", [0.1, 2.0, 30.0])
@settings(deadline=None, max_examples=20)
@given(seed=SEED, scale=SCALE)
def test_sim_ln_holds(eps, seed, scale):
    x, params = random_net(seed, scale)
    net = nets.sim_ln(eps)
    assert nets.gauss_newton(net, params, x) * SLACK >= bounds.sim_ln(x, nets.predict(net, params, x), eps)


@settings(deadline=None, max_examples=40)
@given(SEED, SCALE)
def test_sim_bn_holds(seed, scale):
    x, params = random_net(seed, 1.0)
    params["b1"] = np.abs(params["b1"]) + np.abs(x).sum()  # no neuron silent: its statistics would be 0/0
    params["gamma"] = scale * np.random.default_rng(seed).normal(size=WIDTH)
    net = nets.sim_bn(x)
    trace = nets.gauss_newton(net, params, x) * SLACK
    by_norms = bounds.sim_bn_norms(params["gamma"], params["W2"])
    assert trace >= by_norms
    assert by_norms * SLACK >= 4 * np.abs(params["gamma"] * params["W2"]).sum()
    assert trace >= bounds.sim_bn(x, nets.predict(net, params, x))


def test_values_on_the_hypercube():
    d = 30
    x = np.sign(np.random.default_rng(0).normal(size=(50, d)))
    y = x[:, 0] * x[:, 1]
    assert bounds.two_layer_bias(x, y) == pytest.approx(4 * np.sqrt(d + 1), rel=1e-14)
    assert bounds.deep_bias(x, y, 2) == pytest.approx(bounds.two_layer_bias(x, y), rel=1e-14)
    assert bounds.sim_ln(x, y, np.sqrt(d + 1)) == 2.0
    assert bounds.sim_ln(x, y, 2 * np.sqrt(d + 1)) == pytest.approx(2.0, rel=1e-14)  # not below √(d+1) only
    assert bounds.sim_ln(x, y, 4 * np.sqrt(d + 1)) == pytest.approx(1.0, rel=1e-14)


def test_zero_labels_cost_nothing():
    x = np.ones((2, 3))
    zero = np.zeros(2)
    assert bounds.two_layer_bias(x, zero) == bounds.deep_bias(x, zero, 5) == bounds.sim_ln(x, zero, 0.1) == 0
    assert bounds.sim_bn(x, zero) == 0


@pytest.mark.parametrize("p", [0.05, 0.2, 0.4])
def test_logistic_is_the_square_with_its_own_curvature(p):
    """ℓ″ at its minimum by central differences of the loss itself; their error is O(step²)."""
    for y in (1.0, -1.0):

        def loss(f, y=y):
            return (1 - p) * np.logaddexp(0, -y * f) + p * np.logaddexp(0, y * f)

        step, (at,) = 1e-4, bounds.logistic_target([y], p)
        assert loss(at - 1e-3) > loss(at) < loss(at + 1e-3)
        second = (loss(at + step) - 2 * loss(at) + loss(at - step)) / step**2
        assert second == pytest.approx(bounds.logistic_curvature(p), abs=1e-7)


def test_sim_bn_complete_refuses_other_sets():
    corners = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1.0]])
    assert bounds.sim_bn_complete(corners, 3 * corners.prod(axis=1)) == 24
    with pytest.raises(ArgumentError, match="complete"):
        bounds.sim_bn_complete(corners[:3], corners[:3].prod(axis=1))
    with pytest.raises(ArgumentError, match="complete"):
        bounds.sim_bn_complete(corners[[0, 1, 2, 3, 3]], corners[[0, 1, 2, 3, 3]].prod(axis=1))
    with pytest.raises(ArgumentError, match="multiple of x₁x₂"):
        bounds.sim_bn_complete(corners, [1, 1, 1, -1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bounds.two_layer_bias([1.0, 2.0], [1.0]), "x must be of shape"),
        (lambda: bounds.two_layer_bias([[1.0]], [[1.0]]), "y must be of shape"),
        (lambda: bounds.two_layer_bias([[np.nan]], [1.0]), "x must be finite"),
        (lambda: bounds.deep_bias([[1.0]], [1.0], 1), "depth must be a whole number ≥ 2"),
        (lambda: bounds.sim_ln([[1.0]], [1.0], 0.0), "eps must be"),
        (lambda: bounds.logistic(bounds.two_layer_bias, [[1.0]], [0.5], smoothing=0.2), "y must be -1 or"),
        (lambda: bounds.logistic(bounds.two_layer_bias, [[1.0]], [1.0], smoothing=0.0), "smoothing must be"),
        (
            lambda: bounds.logistic(bounds.two_layer_bias, [[1.0]], [1.0], smoothing=1.0),
            "smoothing must be below",
        ),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
