"""Misprints of wen2023: the printed form fails by the stated amount, the corrected one holds."""

import numpy as np
import pytest
from cases import theory_nets as nets

from steppe.check import ArgumentError
from steppe.flattening import memorising
from steppe.papers.wen2023.theory import bounds, complexity, generalising, printed

ROUNDING = 1e-12


def xor_sample(d, n):
    x = np.sign(np.random.default_rng(d).normal(size=(n, d)))
    return x, x[:, 0] * x[:, 1]


def test_eq_5():
    x, y = xor_sample(30, 16)
    params = printed.xor(30)
    assert np.abs(nets.predict(nets.mlp, params, x) - y).max() < ROUNDING
    printed_trace, corrected = (nets.trace(nets.mlp, p, x, y) for p in (params, generalising.xor(30)))
    assert printed_trace == pytest.approx(2 * (31 / np.sqrt(901) + np.sqrt(901)), rel=ROUNDING)
    assert printed_trace == pytest.approx(62.1, abs=0.05)
    assert corrected == pytest.approx(bounds.two_layer_bias(x, y), rel=ROUNDING) == pytest.approx(22.271, abs=5e-4)


def test_eq_16():
    """v for w: no interpolation. With w, R² + 1 for its root: trace 2(R² + 2) instead of 4√(R² + 1)."""
    d = 30
    x, y = xor_sample(d, 16)
    support = nets.cube(2)
    labels = support.prod(axis=1)
    f = nets.predict(nets.mlp, printed.junta(support, labels, d, np.sqrt(d)), x)
    assert np.abs(f - y).min() > 0.5
    half = printed.junta(support, labels, d, np.sqrt(d), separating=True)
    assert np.abs(nets.predict(nets.mlp, half, x) - y).max() < ROUNDING
    assert nets.trace(nets.mlp, half, x, y) == pytest.approx(2 * (d + 2), rel=ROUNDING)
    with pytest.raises(ArgumentError, match=r"Eq. 16 divides 0 by 0"):
        printed.junta(support, 0 * labels, d, np.sqrt(d))


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_theorem_4_1_pays_for_zero_labels(depth):
    """r = u = 1 where y = 0 costs 2/n each, where the bound has 0."""
    x = nets.cube(4)[:6]
    y = np.array([1.0, 0, -2, 0, 0.5, 0])
    bound = bounds.deep_bias(x, y, depth)
    assert np.abs(nets.predict(nets.mlp, printed.deep(x, y, depth), x) - y).max() < ROUNDING
    assert nets.trace(nets.mlp, printed.deep(x, y, depth), x, y) == pytest.approx(bound + 2 * 3 / 6, rel=ROUNDING)
    assert nets.trace(nets.mlp, memorising.deep(x, y, depth), x, y) == pytest.approx(bound, rel=ROUNDING)


def test_theorem_4_1_sits_on_a_kink_from_depth_3():
    """Second differences of L along every axis sum to the trace only where f is differentiable.

    With diagonal W₂, raising W₂[k, i] wakes neuron k at xᵢ: half of 2(W₃[k] a₁ᵢ)²/n is missed by derivatives.
    """
    x = nets.cube(3)[[0, 3, 5, 6]]
    y = np.array([1.0, -1.0, 2.0, -0.5])
    step = 1e-4

    def second_differences(params):
        total = 0.0
        for name, W in params.items():
            for at in np.ndindex(W.shape):
                for sign in (step, -step):
                    moved = params | {name: W.copy()}
                    moved[name][at] += sign
                    total += np.mean((nets.predict(nets.mlp, moved, x) - y) ** 2) / step**2
        return total

    bound = bounds.deep_bias(x, y, 3)
    # Along an axis f is affine within a region of activity: the differences are exact but for rounding ε/step².
    assert second_differences(memorising.deep(x, y, 3)) == pytest.approx(bound, abs=1e-6)
    params = printed.deep(x, y, 3)
    heights = np.maximum(x @ params["W1"].T + params["b1"], 0).max(axis=1)
    missed = np.outer(params["W3"] ** 2, heights**2)
    extra = (missed.sum() - np.trace(missed)) / len(x)
    assert second_differences(params) == pytest.approx(bound + extra, abs=1e-5)
    assert extra > 0.4 * bound


def test_theorem_5_1_changes_over_too_late_and_pays_for_zero_labels():
    x = nets.cube(3)[:4]
    eps = 4.0  # ‖x′‖ = 2: ‖x′‖|y| = 3, 0, 1, 8
    y = np.array([1.5, 0.0, -0.5, 4.0])
    net = nets.sim_ln(eps)
    for params in (printed.sim_ln(x, y, eps), memorising.sim_ln(x, y, eps)):
        assert np.abs(nets.predict(net, params, x) - y).max() < ROUNDING
    assert bounds.sim_ln(x, y, eps) == 2 / 4 * (1 + 0 + 0.5 + 1)
    assert nets.trace(net, memorising.sim_ln(x, y, eps), x, y) == pytest.approx(1.25, rel=ROUNDING)
    assert nets.trace(net, printed.sim_ln(x, y, eps), x, y) == pytest.approx(2 / 4 * (1.5 + 1 + 0.5 + 1), rel=ROUNDING)


def test_lemma_a1_without_its_signs_is_constant():
    x = nets.cube(4)
    f = nets.predict(nets.sim_bn(x), printed.sim_bn_xor(4), x)
    assert f == pytest.approx(np.ones(16))


def test_lemma_a3_misses_a_factor_two():
    x = nets.cube(4)
    params = generalising.sim_bn_xor(4, scale=1e4)
    trace = nets.gauss_newton(nets.sim_bn(x), params, x)
    # The excess is 2V/s², V = 2.
    assert trace == pytest.approx(bounds.sim_bn_norms(params["gamma"], params["W2"]), abs=5e-8)
    assert trace == pytest.approx(2 * printed.sim_bn_norms(params["gamma"], params["W2"]), abs=5e-8)


@pytest.mark.parametrize("p", [0.1, 0.2, 0.4])
def test_definition_a2_is_minimal_at_the_opposite(p):
    a = np.linspace(-5, 5, 100_001)
    for b, y in ((1, 1.0), (0, -1.0)):
        (stated,) = bounds.logistic_target([y], p)
        assert a[np.argmin(printed.logistic_loss(a, b, p))] == pytest.approx(-stated, abs=1e-4)
        assert a[np.argmin(printed.logistic_loss(a, b, 1 - p))] == pytest.approx(stated, abs=1e-4)


def test_lemma_a13_is_upside_down():
    assert printed.logistic_curvature(0.2) == pytest.approx(6.25)
    assert bounds.logistic_curvature(0.2) == pytest.approx(0.16)


def test_zero_one_is_printed_as_accuracy():
    assert printed.zero_one([1, 1, -1, -1], [2.0, 0.0, -1.0, 1.0]) == 0.5
    assert nets.zero_one(np.array([1, 1, -1, 1]), np.array([2.0, 0.0, -1.0, 1.0])) == 0.25


def test_lemma_a19():
    """On the hypercube σ = 1, ‖x‖⁴ = d² and ‖x‖² > d/2 always: the printed bounds are below d² and above 1."""
    for d in (4, 30, 1000):
        assert printed.fourth_moment(d, 1.0) < d**2 <= complexity.fourth_moment(d, 1.0)
        assert printed.long_probability(d, 1.0) > 1 > complexity.long_probability(d, 1.0) > 0


@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_fourth_moment_of_a_sphere(d):
    v = np.random.default_rng(d).normal(size=(200_000, d))
    fourth = (v[:, 0] / np.linalg.norm(v, axis=1)) ** 4
    # Four standard errors.
    assert complexity.sphere_fourth_moment(d) == pytest.approx(fourth.mean(), abs=4 * fourth.std() / 447 + 1e-15)
