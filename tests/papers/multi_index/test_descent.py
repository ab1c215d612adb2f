"""Descent on the inner weights: its gradient by differences; its value falls, and ends near Theorem 4's."""

import numpy as np
import pytest

from steppe.activations import leaky, quadratic, rectifier, relu_power
from steppe.check import ArgumentError
from steppe.data import multi_index, orthonormal
from steppe.data.links import SumOfSingleIndex
from steppe.flattening import NoInterpolatorError, features, flattest_interpolator
from steppe.papers.multi_index.theory import copies, correlated, descend, pointwise, population_loss, usefulness

FAMILY = [rectifier, leaky(0.1), quadratic, relu_power(3)]


def units(W):
    return W / np.linalg.norm(W, axis=1, keepdims=True)


@pytest.mark.parametrize("sigma", FAMILY, ids=str)
def test_usefulness_and_its_gradient(sigma):
    rng = np.random.default_rng(0)
    x, W, multiplier = rng.normal(size=(7, 3)), units(rng.normal(size=(5, 3))), rng.normal(size=7)
    value, gradient = usefulness(x, W, multiplier, sigma)
    f = features(W, x, sigma)
    np.testing.assert_allclose(value, np.log(np.abs(multiplier @ f.phi) ** f.p / f.q), rtol=1e-10)
    np.testing.assert_allclose(np.sum(gradient * W, axis=1), 0.0, atol=1e-12)
    assert (np.linalg.norm(gradient, axis=1) <= 1 + 1e-12).all()
    step = 1e-6
    for j in range(3):
        tangent = np.eye(3)[j] - W[:, j : j + 1] * W
        ahead, behind = (usefulness(x, units(W + s * tangent), multiplier, sigma)[0] for s in (step, -step))
        slope = (ahead - behind) / (2 * step)
        short = np.linalg.norm(gradient, axis=1) < 1 - 1e-9  # not cut to length 1
        # Central differences: step² and rounding/step.
        np.testing.assert_allclose(slope[short], np.sum(gradient * tangent, axis=1)[short], atol=1e-5)
        same = np.sign(slope[~short]) == np.sign(np.sum(gradient * tangent, axis=1)[~short])
        assert (same | (np.abs(slope[~short]) < 1e-5)).all()


@pytest.mark.parametrize("sigma", [rectifier, quadratic], ids=str)
def test_gradient_of_the_value(sigma):
    """d/dw_k of the least Σ q|a|^p is −q_k |a_k|^p ∇ usefulness (Danskin): by differences of the solution."""
    rng = np.random.default_rng(3)
    x, y, W = rng.normal(size=(5, 4)), rng.normal(size=5), units(rng.normal(size=(12, 4)))

    def solved(W):
        f = features(W, x, sigma)
        return f, flattest_interpolator(f.phi, y, f.q, f.p, rtol=1e-10)

    f, best = solved(W)
    tangent = rng.normal(size=W.shape)
    tangent -= np.sum(tangent * W, axis=1, keepdims=True) * W
    step = 1e-5
    slopes = [
        (usefulness(x, units(W + s * tangent), best.multiplier, sigma)[0]) for s in (step, -step)
    ]  # fmt: skip
    predicted = -np.sum(f.q * np.abs(best.a) ** f.p * (slopes[0] - slopes[1]) / (2 * step))
    found = (solved(units(W + step * tangent))[1].flatness - solved(units(W - step * tangent))[1].flatness) / (2 * step)
    # Gaps of 1e-10 over the step: 1e-5 of the value.
    assert found == pytest.approx(predicted, rel=1e-3, abs=1e-4 * best.flatness)


@pytest.mark.parametrize("sigma", FAMILY[:3], ids=str)
def test_descent_finds_interpolators_that_generalise(sigma):
    link, U = SumOfSingleIndex(sigma), orthonormal(1, 6, key=0)
    x, y, *_ = multi_index(link, U, 16, key=1)
    W = correlated(48, U, 0.05, key=2)
    done = descend(x, y, W, sigma, steps=40, rtol=1e-4)
    assert (np.diff(done.values) < 0).all()
    np.testing.assert_allclose(np.linalg.norm(done.W, axis=1), 1.0, rtol=1e-12)
    f = features(done.W, x, sigma)
    assert done.interpolator.flatness == pytest.approx(float(f.q @ np.abs(done.interpolator.a) ** f.p), rel=1e-9)
    assert done.values[-1] == done.interpolator.flatness >= pointwise(x, y, 48, sigma)
    teacher = copies(link, U, 48)
    costs = features(teacher.W, x, sigma)
    good = float(costs.q @ np.abs(teacher.a) ** costs.p)
    # It starts many times as sharp as Theorem 4's network and ends at the same order.
    assert done.values[0] > 5 * good
    assert done.values[-1] < 2 * good
    start = features(W, x, sigma)
    before = flattest_interpolator(start.phi, y, start.q, start.p)
    losses = [population_loss(V, b.a, sigma, link, U) for V, b in ((W, before), (done.W, done.interpolator))]
    assert losses[1] < 0.3 * losses[0]


def test_descent_ends_when_no_step_helps():
    """One neuron along the data is the flattest already."""
    x, y = np.array([[1.0, 2.0]]), np.array([3.0])
    done = descend(x, y, x, rectifier, steps=5)
    assert done.lr == 0
    assert len(done.values) == 1
    assert done.values[0] == pytest.approx(pointwise(x, y, 1, rectifier), rel=1e-6)


def test_wrong_starts():
    with pytest.raises(NoInterpolatorError, match="no interpolator exists"):
        descend([[1.0, 0.0]], [1.0], [[-1.0, 0.0]], rectifier)
    with pytest.raises(ArgumentError, match="lr must be"):
        descend([[1.0]], [1.0], [[1.0]], rectifier, lr=0.0)
