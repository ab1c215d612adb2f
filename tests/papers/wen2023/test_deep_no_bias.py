"""Depth 3 and more without bias: both kinds of nets by hand, and the claims on runs that must fail them."""

import types

import numpy as np
import pytest
from cases import theory_nets as nets

import steppe
from steppe.check import ArgumentError
from steppe.papers.wen2023 import explicit, section_6
from steppe.papers.wen2023.theory import bounds, deep_no_bias


def by_hand(params, x):
    """Outputs, and ‖∇f‖² by a backward pass without autodiff."""
    depth, f, squares = len(params), [], []
    for point in x:
        a = [point]
        for k in range(1, depth):
            a.append(np.maximum(params[f"W{k}"] @ a[-1], 0))
        back, total = params[f"W{depth}"] * (a[-1] > 0), a[-1] @ a[-1]
        f.append(params[f"W{depth}"] @ a[-1])
        for k in range(depth - 1, 0, -1):
            total += (back @ back) * (a[k - 1] @ a[k - 1])
            back = (params[f"W{k}"].T @ back) * (a[k - 1] > 0)
        squares.append(total)
    return np.array(f), np.array(squares)


@pytest.mark.parametrize("depth", [3, 4, 6])
@pytest.mark.parametrize(("d", "n", "seed"), [(3, 5, 0), (9, 40, 1)])
def test_both_nets_attain_the_bound_on_the_cube(depth, d, n, seed):
    data = steppe.data.xor(d, n, replace=False, key=seed)
    bound = bounds.deep_no_bias(data.x, data.y, depth)
    assert bound == pytest.approx(2 * depth * d ** (1 / depth), rel=1e-12)
    for params in (deep_no_bias.memorising(data.x, data.y, depth), deep_no_bias.generalising(d, depth)):
        f, squares = by_hand(params, data.x)
        np.testing.assert_allclose(f, data.y, atol=1e-12)
        assert 2 * squares.mean() == pytest.approx(bound, rel=1e-12)


def test_other_inputs():
    """Gaussians with |y| = ‖x‖ need several bases to be told apart."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(25, 4))
    y = np.linalg.norm(x, axis=1) * rng.choice([-1.0, 1.0], 25)
    params = deep_no_bias.memorising(x, y)
    f, squares = by_hand(params, x)
    np.testing.assert_allclose(f, y, rtol=1e-10)
    assert 2 * squares.mean() == pytest.approx(bounds.deep_no_bias(x, y, 3), rel=1e-10)
    assert len(params["W1"]) > 8


def test_on_the_cube_one_is_right_everywhere_and_one_silent():
    d = 7
    data = steppe.data.xor(d, 30, replace=False, key=0)
    corners = nets.cube(d)
    f, _ = by_hand(deep_no_bias.memorising(data.x, data.y), corners)
    assert (f != 0).sum() == 30
    f, _ = by_hand(deep_no_bias.generalising(d), corners)
    np.testing.assert_allclose(f, corners[:, 0] * corners[:, 1], atol=1e-12)


def test_no_random_net_is_below_the_bound():
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = rng.normal(size=(4, 3))
        params = {"W1": rng.normal(size=(6, 3)), "W2": rng.normal(size=(6, 6)), "W3": rng.normal(size=6)}
        f, squares = by_hand(params, x)
        assert 2 * squares.mean() >= bounds.deep_no_bias(x, f, 3)


@pytest.mark.parametrize(
    ("x", "y", "depth", "message"),
    [
        ([[1.0, 1.0], [1.0, -1.0]], [1.0, 1.0], 2, "depth must be"),
        ([[1.0, 1.0], [1.0, -1.0]], [1.0, 2.0], 3, r"y must be proportional to ‖x‖"),
        ([[1.0, 1.0], [1.0, -1.0]], [0.0, 1.0], 3, r"y must be proportional to ‖x‖"),
        ([[1.0, 1.0], [2.0, 2.0]], [1.0, 2.0], 3, "x must be of pairwise different directions"),
    ],
)
def test_refused(x, y, depth, message):
    with pytest.raises(ArgumentError, match=message):
        deep_no_bias.memorising(x, y, depth)


def test_the_check_tells_the_two_nets_apart():
    def general(x, y, depth):
        return deep_no_bias.generalising(x.shape[1], depth)

    def sharper(x, y, depth):
        """Not balanced: twice the first layer, half of the second."""
        params = deep_no_bias.memorising(x, y, depth)
        return params | {"W1": 2 * params["W1"], "W2": params["W2"] / 2}

    assert not section_6.flattest_without_bias(general, error=1.0).holds
    assert not section_6.flattest_without_bias(sharper, error=1.0).holds


def runs(accuracy, excess, width=100):
    final = {"trace": 1 + excess, "least_trace": 1.0}
    return [
        types.SimpleNamespace(spec={"width": width}, result={"final": final | {"test_accuracy": accuracy + 0.01 * k}})
        for k in range(3)
    ]


def test_runs_that_generalise_fail_the_claim():
    check = section_6.scenario_two
    assert check(runs(0.95, 3.0), runs(0.7, 0.01)).holds
    assert not check(runs(0.95, 3.0), runs(0.95, 0.01)).holds  # 1-SAM generalises
    assert not check(runs(0.7, 3.0), runs(0.7, 0.01)).holds  # the baseline does not
    assert not check(runs(0.95, 3.0), runs(0.7, 0.5)).holds  # 1-SAM is not at the flattest
    assert check(runs(0.8, 3.0, 60), runs(0.7, 0.4, 60)).holds
    assert not check(runs(0.7, 3.0, 60), runs(0.8, 0.4, 60)).holds


def test_definition_4_2_with_one_neuron_for_each_point_from_the_second_layer_on():
    """The first layer is shared: in the sense of definition 4.2 the net does not memorise, though it knows nothing."""
    data = steppe.data.xor(6, 12, replace=False, key=0)
    params = deep_no_bias.memorising(data.x, data.y)
    assert not explicit.memorises(params, data.x, data.y)
    second = np.maximum(np.maximum(data.x @ params["W1"].T, 0) @ params["W2"].T, 0)
    assert ((second > 0) == np.eye(12, dtype=bool)).all()
