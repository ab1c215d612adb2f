"""Memorising solutions: one neuron for each point, as flat as the bound, and wrong on all other inputs."""

import jax.numpy as jnp
import numpy as np
import pytest
from cases import theory_nets as nets

from steppe.check import ArgumentError
from steppe.flattening import memorising, separating
from steppe.papers.wen2023.theory import bounds


def hypercube(rng, d, n):
    return nets.cube(d)[rng.choice(2**d, n, replace=False)]


def ellipsoid(rng, d, n):
    x = rng.normal(size=(n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True) * np.linspace(1, 3, d) + rng.normal(size=d)


def circle(rng, d, n):
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def labels(rng, n):
    """Labels of any size and both signs, and a zero."""
    y = rng.normal(size=n) * 10.0 ** rng.integers(-2, 2, n)
    y[rng.integers(n)] = 0 if n > 1 else 2.0
    return y


def assert_flattest(net, params, x, y, bound):
    tolerance = nets.rounding(params, x)
    assert np.abs(nets.predict(net, params, x) - y).max() <= tolerance * np.abs(y).max()
    # The trace is quadratic in the activations, hence twice their relative error.
    assert nets.trace(net, params, x, y) == pytest.approx(bound, rel=4 * tolerance)


@pytest.mark.parametrize(
    ("points", "d", "n"),
    [
        (hypercube, 7, 12),
        (hypercube, 2, 3),
        (hypercube, 3, 8),
        (ellipsoid, 4, 15),
        (ellipsoid, 2, 6),
        (circle, 2, 9),
    ],
)
def test_two_layer_attains_its_bound(points, d, n):
    rng = np.random.default_rng(d + n)
    x, y = points(rng, d, n), labels(rng, n)
    params = memorising.two_layer(x, y)
    assert params["W1"].shape == (n, d)
    assert_flattest(nets.mlp, params, x, y, bounds.two_layer_bias(x, y))


@pytest.mark.parametrize(("points", "d", "n", "depth"), [(hypercube, 5, 6, 3), (ellipsoid, 3, 5, 4), (circle, 2, 4, 5)])
def test_any_depth_attains_its_bound(points, d, n, depth):
    rng = np.random.default_rng(depth)
    x, y = points(rng, d, n), labels(rng, n)
    params = memorising.deep(x, y, depth)
    assert_flattest(nets.mlp, params, x, y, bounds.deep_bias(x, y, depth))


@pytest.mark.parametrize("eps", [0.01, 1.5, 40.0])
@pytest.mark.parametrize(("points", "d", "n"), [(hypercube, 6, 8), (ellipsoid, 3, 7)])
def test_sim_ln_attains_its_bound(points, d, n, eps):
    rng = np.random.default_rng(n)
    x, y = points(rng, d, n), labels(rng, n)
    # One point between ε/2 and ε, where the printed rule is not flattest.
    y[0] = 0.75 * eps / np.sqrt(np.sum(x[0] ** 2) + 1)
    params = memorising.sim_ln(x, y, eps)
    assert_flattest(nets.sim_ln(eps), params, x, y, bounds.sim_ln(x, y, eps))


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_one_neuron_a_layer_answers_each_point(depth):
    """Definition 4.2, strictly: all other neurons are below relu's kink, none on it."""
    rng = np.random.default_rng(0)
    x = hypercube(rng, 6, 10)
    params = memorising.deep(x, x[:, 0] * x[:, 1], depth)
    h = x @ params["W1"].T + params["b1"]
    for layer in range(2, depth + 1):
        assert np.array_equal(h > 0, np.eye(10, dtype=bool))
        assert np.all(h[~np.eye(10, dtype=bool)] < 0)
        if layer < depth:
            h = np.maximum(h, 0) @ params[f"W{layer}"].T


@pytest.mark.parametrize(("d", "n"), [(2, 3), (5, 11), (10, 40), (12, 300)])
@pytest.mark.parametrize("kind", ["two_layer", "deep", "sim_ln"])
def test_error_on_the_whole_hypercube(d, n, kind):
    """1 − n/2^d, by enumeration (Propositions 4.1 and 5.1)."""
    x = hypercube(np.random.default_rng(d), d, n)
    y = x[:, 0] * x[:, 1]
    make, net = {
        "two_layer": (lambda: memorising.two_layer(x, y), nets.mlp),
        "deep": (lambda: memorising.deep(x, y, 3), nets.mlp),
        "sim_ln": (lambda: memorising.sim_ln(x, y, 0.1), nets.sim_ln(0.1)),
    }[kind]
    everywhere = nets.cube(d)
    f = nets.predict(net, make(), everywhere)
    assert nets.zero_one(everywhere[:, 0] * everywhere[:, 1], f) == 1 - n / 2**d
    assert np.count_nonzero(f) == n


def test_the_whole_hypercube_leaves_no_error():
    x = nets.cube(4)
    y = x[:, 0] * x[:, 1]
    assert nets.zero_one(y, nets.predict(nets.mlp, memorising.two_layer(x, y), x)) == 0


def test_repeats_share_a_neuron_and_a_lone_point_needs_one():
    x = np.array([[1.0, 1], [1, -1], [1, 1], [-1, 1], [1, -1]])
    y = np.array([2.0, -1, 2, 0.5, -1])
    params = memorising.two_layer(x, y)
    assert len(params["W1"]) == 3
    assert_flattest(nets.mlp, params, x, y, bounds.two_layer_bias(x, y))
    one = memorising.deep(x[:1] * 0, y[:1], 3)
    assert_flattest(nets.mlp, one, x[:1] * 0, y[:1], bounds.deep_bias(x[:1] * 0, y[:1], 3))


def test_contradictions_and_inner_points_are_named():
    with pytest.raises(ArgumentError, match="rows 0 and 2"):
        memorising.two_layer([[1.0, 1], [1, -1], [1, 1]], [1, -1, -1])
    with pytest.raises(ArgumentError, match=r"point 3, \[0.2, 0.3\], in the convex hull of points \[0, 1, 2\]"):
        memorising.two_layer([[0, 0], [1, 0], [0, 1], [0.2, 0.3]], [1, 2, 3, 4])
    with pytest.raises(ArgumentError, match="fraction must be below 1"):
        memorising.two_layer([[0.0, 0], [1, 0]], [1, 2], fraction=1.0)


def test_a_smaller_fraction_memorises_more_narrowly():
    """Figure 3: the shaded caps shrink with ε; the minimum stays as flat."""
    rng = np.random.default_rng(0)
    x, y = circle(rng, 2, 7), np.ones(7)
    grid = circle(rng, 2, 4000)
    shares = []
    for fraction in (0.9, 0.3, 0.01):
        params = memorising.two_layer(x, y, fraction=fraction)
        assert_flattest(nets.mlp, params, x, y, bounds.two_layer_bias(x, y))
        shares.append(np.mean(nets.predict(nets.mlp, params, grid) != 0))
    assert shares[0] > shares[1] > shares[2]


def test_a_separation_of_ones_own():
    x = hypercube(np.random.default_rng(1), 5, 8)
    y = x[:, 0] * x[:, 1]
    params = memorising.two_layer(x, y, separation=separating.widest(x))
    assert_flattest(nets.mlp, params, x, y, bounds.two_layer_bias(x, y))


def test_logistic_loss_has_the_same_flattest_points():
    p = 0.2
    x = hypercube(np.random.default_rng(2), 5, 7)
    y = x[:, 0] * x[:, 1]
    params = memorising.two_layer(x, bounds.logistic_target(y, p))

    def loss(f, y):
        return (1 - p) * jnp.logaddexp(0.0, -y * f) + p * jnp.logaddexp(0.0, y * f)

    measured = nets.trace(nets.mlp, params, x, y, loss)
    assert measured == pytest.approx(bounds.logistic(bounds.two_layer_bias, x, y, smoothing=p), rel=1e-12)
