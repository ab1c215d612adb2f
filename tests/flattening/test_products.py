"""The least sharpness by products: the same number as with the whole root, within the gap that it states."""

from itertools import pairwise

import numpy as np
import pytest
from cases.flatten_nets import LAYERS, dense, problem

import steppe
from steppe.flattening import Rescaling, balance, exponents, flattest
from steppe.flattening._jacobian import Jacobian, root
from steppe.flattening._least_sharpness import tracked
from steppe.flattening._neurons import Arrays
from steppe.flattening._rescaling import compressed


def form(name, seed=0):
    p = problem(name, seed)
    layers = steppe.flatten(p, p.w0, layers=LAYERS.get(name)).layers
    exponents, _ = Arrays.of(p).exponents(layers)
    return p, Rescaling(root(p, p.w0), exponents.matrix())


class Dense:
    def __init__(self, B):
        self.B, self.rows = B, len(B)

    def pull(self, V):
        return self.B.T @ V

    def push(self, Y):
        return self.B @ Y


@pytest.mark.parametrize("name", ["stack", "cnn"])
def test_products_with_blocks(name):
    """BᵀV and BY of the network against the root itself, over some of the columns, by pieces of the data or not."""
    p, whole = form(name)
    rng, kept = np.random.default_rng(0), np.arange(p.w0.size) % 3 > 0
    B = Jacobian.of(p, p.w0, kept)
    V, Y = rng.normal(size=(B.rows, 3)), rng.normal(size=(kept.sum(), 14))  # more than one block
    expected = whole.jacobian[:, kept]
    np.testing.assert_allclose(B.pull(V), expected.T @ V, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(B.push(Y), expected @ Y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["stack", "residual"])
def test_compressed_is_the_same_matrix(name):
    _, whole = form(name)
    t = np.random.default_rng(0).normal(size=whole.units)
    for rows in (2, 5):
        few = Rescaling(whole.jacobian[:rows], whole.exponents)
        small = compressed(few)
        assert small.jacobian.shape[1] <= few.jacobian.shape[1]
        np.testing.assert_allclose(small.gram(t), few.gram(t), rtol=1e-12, atol=1e-14 * np.max(few.gram(t)))


@pytest.mark.parametrize("rows", [30, 70])
def test_tracked_vectors_reach_the_minimum_of_all_rows(rows):
    """A planted chain of two hidden layers with more rows than tracked vectors."""
    rng = np.random.default_rng(rows)
    sides = [np.full(3, -1), np.arange(4), 4 + np.arange(4), np.full(2, -1)]
    pairs = list(pairwise(sides))
    src = np.concatenate([np.tile(a, len(b)) for a, b in pairs])
    dst = np.concatenate([np.repeat(b, len(a)) for a, b in pairs])
    A = exponents(src, dst, 8)
    whole = Rescaling(rng.normal(size=(rows, len(src))) * np.exp(rng.normal(size=len(src))), A)
    exact = flattest(whole, rtol=1e-9)
    best = tracked(Dense(whole.jacobian), A, balance(A, whole.weights(np.eye(rows))).t, rtol=1e-6)
    assert best.lower <= exact.value * (1 + 1e-12)  # a bound for any t
    assert best.lower == pytest.approx(exact.value, rel=2e-6)
    assert best.ritz == pytest.approx(exact.value, rel=2e-6)
    top = np.linalg.eigvalsh(whole.gram(best.t))[-1]
    assert best.ritz == pytest.approx(top, rel=2e-6)
    assert best.vector @ whole.gram(best.t) @ best.vector == pytest.approx(best.ritz, rel=1e-12)
    assert np.linalg.norm(best.vector) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("name", ["stack", "residual"])
def test_flatten_by_products(name, monkeypatch):
    p = problem(name)
    exact = steppe.flatten(p, p.w0, measure="sharpness", layers=LAYERS.get(name))
    monkeypatch.setattr("steppe.flattening._flatten._SLOPES", 0)
    best = steppe.flatten(p, p.w0, measure="sharpness", layers=LAYERS.get(name))
    assert best.lower <= exact.value * (1 + 1e-12)  # a bound, up to the rounding of the other's value
    assert best.value == pytest.approx(exact.value, rel=1e-3)  # the gap of this route
    assert best.gap <= 1e-3
    assert best.lower <= best.value <= best.upper
    assert best.value == pytest.approx(dense(p, best.w)["sharpness"], rel=2e-4)  # the part of the gap for λ_max
    assert best.before == pytest.approx(exact.before, rel=2e-4)


def test_neurons_that_do_nothing_by_products(monkeypatch):
    """Columns that some direction sends to zero are left out of the bound, not of the value."""
    monkeypatch.setattr("steppe.flattening._flatten._SLOPES", 0)
    network = steppe.networks.TwoLayer()
    params = {"W1": np.ones((3, 1)), "b1": np.array([0.0, -9.0, 1.0]), "W2": np.array([2.0, 1.0, 0.0])}
    x = np.array([[1.0], [2.0]])
    p = steppe.Problem(network, params, x, network(params, x), steppe.losses.half_mse)
    best = steppe.flatten(p, p.w0, measure="sharpness")
    assert best.gap <= 1e-3
    assert best.value == pytest.approx(dense(p, best.w)["sharpness"], rel=2e-4)
