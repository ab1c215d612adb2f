"""Generalising solutions: as flat as the memorising ones, right everywhere, and the same at a larger width."""

import ast
import itertools
from pathlib import Path

import numpy as np
import pytest
from cases import theory_nets as nets

from steppe.check import ArgumentError
from steppe.flattening import memorising, separating
from steppe.papers.wen2023 import theory
from steppe.papers.wen2023.theory import bounds, generalising
from steppe.papers.wen2023.theory.complexity import path_norm

# Activations are short sums of numbers of order one.
ROUNDING = 1e-13


@pytest.mark.parametrize(("d", "depth"), [(2, 2), (7, 2), (12, 2), (6, 3), (5, 5)])
def test_xor_is_right_everywhere_and_flattest(d, depth):
    everywhere = nets.cube(d)
    y = everywhere[:, 0] * everywhere[:, 1]
    params = generalising.xor(d, depth=depth)
    assert np.abs(nets.predict(nets.mlp, params, everywhere) - y).max() < ROUNDING
    some = np.random.default_rng(d).choice(2**d, 4, replace=False)
    bound = bounds.deep_bias(everywhere[some], y[some], depth)
    assert nets.trace(nets.mlp, params, everywhere[some], y[some]) == pytest.approx(bound, rel=ROUNDING)


@pytest.mark.parametrize("coordinates", [(3,), (4, 1), (0, 2, 5), (1, 2, 3, 5)])
def test_parity_of_any_coordinates(coordinates):
    everywhere = nets.cube(6)
    y = everywhere[:, coordinates].prod(axis=1)
    params = generalising.parity(6, coordinates)
    assert len(params["W1"]) == 2 ** len(coordinates)
    assert np.abs(nets.predict(nets.mlp, params, everywhere) - y).max() < ROUNDING
    assert nets.trace(nets.mlp, params, everywhere, y) == pytest.approx(4 * np.sqrt(7), rel=ROUNDING)


def test_junta_with_labels_of_any_size():
    """Proposition A.1: a pentagon in coordinates 2 and 0, one label 0, on a sphere of radius 2 in R⁴."""
    rng = np.random.default_rng(0)
    angle = 2 * np.pi * np.arange(5) / 5
    support = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    values = np.array([1.0, -2.0, 0.0, 0.3, 7.0])
    corner = rng.integers(0, 5, 40)
    rest = rng.normal(size=(40, 2))
    x = np.zeros((40, 4))
    x[:, [2, 0]] = support[corner]
    x[:, [1, 3]] = rest * np.sqrt(3) / np.linalg.norm(rest, axis=1, keepdims=True)
    for depth in (2, 3):
        params = generalising.junta(support, values, 4, 2.0, coordinates=(2, 0), depth=depth)
        assert np.abs(nets.predict(nets.mlp, params, x) - values[corner]).max() < 7 * ROUNDING
        bound = bounds.deep_bias(x, values[corner], depth)
        assert nets.trace(nets.mlp, params, x, values[corner]) == pytest.approx(bound, rel=ROUNDING)
    for eps in (0.1, 20.0):
        params = generalising.sim_ln_junta(support, values, 4, 2.0, eps, coordinates=(2, 0))
        net = nets.sim_ln(eps)
        assert np.abs(nets.predict(net, params, x) - values[corner]).max() < 7 * ROUNDING
        bound = bounds.sim_ln(x, values[corner], eps)
        assert nets.trace(net, params, x, values[corner]) == pytest.approx(bound, rel=ROUNDING)


@pytest.mark.parametrize("eps", [1e-3, 1.0, 5.0, 20.0])
def test_sim_ln_xor(eps):
    """Proposition 5.2, and beyond its ε < √(d + 1)."""
    everywhere = nets.cube(8)
    y = everywhere[:, 0] * everywhere[:, 1]
    params = generalising.sim_ln_xor(8, eps)
    assert np.abs(nets.predict(nets.sim_ln(eps), params, everywhere) - y).max() < ROUNDING
    bound = bounds.sim_ln(everywhere[::37], y[::37], eps)
    assert bound == pytest.approx(min(2, 4 * 3 / eps))
    measured = nets.trace(nets.sim_ln(eps), params, everywhere[::37], y[::37])
    assert measured == pytest.approx(bound, rel=ROUNDING)


@pytest.mark.parametrize(("d", "epsilon", "scale"), [(2, 0.5, 1.0), (6, 0.1, 2.0), (9, 0.9, 0.3)])
def test_no_bias_xor(d, epsilon, scale):
    everywhere = nets.cube(d)
    y = everywhere[:, 0] * everywhere[:, 1]
    params = generalising.no_bias_xor(d, epsilon=epsilon, scale=scale)
    assert "b1" not in params
    assert np.abs(nets.predict(nets.mlp, params, everywhere) - y).max() < ROUNDING / (1 - epsilon)
    formula = d / (scale * (1 - epsilon)) ** 2 + 8 * scale**2 * (1 + epsilon**2)
    assert nets.trace(nets.mlp, params, everywhere, y) == pytest.approx(formula, rel=ROUNDING)
    assert path_norm(params) == pytest.approx(2 * np.sqrt(2 * (1 + epsilon**2)) / (1 - epsilon))


def complete_set(rng, d, size):
    k = d - 2
    S = nets.cube(k)[rng.choice(2**k, size, replace=False)] if k else np.zeros((1, 0))
    x = np.array([[a, b, *s] for s in S for a, b in itertools.product((1, -1), repeat=2)], dtype=float)
    return x, x[:, 0] * x[:, 1], S


@pytest.mark.parametrize(("d", "size", "scale", "width"), [(2, 1, 1.0, 4), (5, 4, 3.0, 4), (6, 6, 100.0, 8)])
def test_sim_bn_approaches_its_infimum(d, size, scale, width):
    """tr = 8 + 2V/(k s²) with k copies of each neuron, and the infimum 8 (Lemmas A.1 and A.3)."""
    x, y, S = complete_set(np.random.default_rng(d), d, size)
    params = generalising.sim_bn_xor(d, scale=scale, width=width)
    net = nets.sim_bn(x)
    assert np.abs(nets.predict(net, params, x) - y).max() < ROUNDING
    spread = np.mean(np.sum((S - S.mean(axis=0)) ** 2, axis=1))
    expected = 8 + 2 * spread / (width / 4 * scale**2)
    assert nets.trace(net, params, x, y) == pytest.approx(expected, rel=ROUNDING)
    assert bounds.sim_bn_complete(x, y) == 8
    assert bounds.sim_bn_norms(params["gamma"], params["W2"]) == pytest.approx(8)
    assert bounds.sim_bn(x, y) == pytest.approx(4 * np.sqrt(2))
    everywhere = nets.cube(d)
    f = nets.predict(net, params, everywhere)
    assert np.abs(f - everywhere[:, 0] * everywhere[:, 1]).max() < ROUNDING
    assert np.array_equal(bounds.tails(x), np.unique(S, axis=0))


def test_sim_bn_of_uneven_width():
    x, y, _ = complete_set(np.random.default_rng(0), 4, 3)
    params = generalising.sim_bn_xor(4, width=7)
    assert np.abs(nets.predict(nets.sim_bn(x), params, x) - y).max() < ROUNDING
    assert bounds.sim_bn_norms(params["gamma"], params["W2"]) == pytest.approx(8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: generalising.parity(4, (0, 0)), "coordinates must be 2 different"),
        (lambda: generalising.parity(4, (0, 4)), "coordinates must be 2 different"),
        (lambda: generalising.parity(4, ()), "coordinates must be 1 to 14"),
        (lambda: generalising.xor(1), "d must be a whole number ≥ 2"),
        (lambda: generalising.junta([[1.0, 1.0]], [1.0], 3, 1.0), "radius must be"),
        (lambda: generalising.junta([[0.0], [1.0], [2.0]], [1, 2, 3], 3, 3.0), "point 1"),
        (lambda: generalising.no_bias_xor(3, epsilon=0.0), "epsilon must be"),
        (lambda: generalising.no_bias_xor(3, epsilon=1.0), "epsilon must be below 1"),
        (lambda: generalising.sim_bn_xor(3, width=3), "width must be"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_a_coordinate_that_is_no_whole_number_is_refused():
    with pytest.raises(ArgumentError, match="coordinates must be a whole number"):
        generalising.parity(5, (0.5, 1))


def test_no_jax():
    """The constructions are an oracle of the measures: they share neither code nor an array library with them."""
    for path in (*Path(theory.__file__).parent.glob("*.py"), Path(memorising.__file__), Path(separating.__file__)):
        tree = ast.parse(path.read_text())
        names = {
            alias.name if isinstance(node, ast.Import) else node.module
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        assert not any(name.split(".")[0] == "jax" for name in names)
        assert not any(name.startswith(("steppe.measures", "steppe.dynamics")) for name in names)
