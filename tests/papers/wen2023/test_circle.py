"""Proposition A.2, corrected: a Lipschitz label on the circle, interpolated at the bound, with error Õ(δ²)."""

import numpy as np
import pytest
from cases import theory_nets as nets

from steppe.check import ArgumentError
from steppe.papers.wen2023.theory import bounds, generalising, printed
from steppe.papers.wen2023.theory.generalising import arcs


def label(v):
    """2-Lipschitz, of both signs: sin 2φ."""
    return 2 * v[:, 0] * v[:, 1]


def data(rng, n, d=2, radius=1.0):
    angle = rng.uniform(0, 2 * np.pi, n)
    rest = rng.normal(size=(n, d - 2))
    if d > 2:
        rest *= np.sqrt(radius**2 - 1) / np.linalg.norm(rest, axis=1, keepdims=True)
    x = np.concatenate([np.cos(angle)[:, None], np.sin(angle)[:, None], rest], axis=1)
    return x, label(x)


def even(n):
    angle = 2 * np.pi * (np.arange(n) + 0.5) / n
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def error(params):
    """Mean square error over the circle, on a grid finer than the ramps."""
    v = even(200_000)
    neurons = zip(params["W1"][:, :2], params["b1"], params["W2"], strict=True)
    f = sum(c * np.maximum(v @ w + b, 0) for w, b, c in neurons)
    return np.mean((f - label(v)) ** 2)


@pytest.mark.parametrize(("n", "d", "radius"), [(1, 2, 1.0), (2, 2, 1.0), (9, 2, 1.0), (12, 4, 2.0)])
def test_it_interpolates_at_the_bound(n, d, radius):
    x, y = data(np.random.default_rng(n), n, d, radius)
    params = generalising.circle(x, y)
    assert len(params["W1"]) == 3 * n
    tolerance = nets.rounding(params, x)
    assert np.abs(nets.predict(nets.mlp, params, x) - y).max() <= tolerance
    measured = nets.trace(nets.mlp, params, x, y)
    assert measured == pytest.approx(bounds.two_layer_bias(x, y), rel=4 * tolerance)
    # The plateaus are silent at all training points: they cost nothing.
    assert np.all(x @ params["W1"][n:].T + params["b1"][n:] < 0)


@pytest.mark.parametrize("n", [10, 30, 60])
def test_error_is_below_its_bound(n):
    x, y = data(np.random.default_rng(n), n)
    around = arcs(x, y).arcs
    # L = 2 and max y² = 1.
    assert error(generalising.circle(x, y)) <= (1 + 1 / (2 * np.pi)) * around.max() ** 2
    coarse = 2 / np.pi * np.minimum(around / 8, 0.01).sum()
    assert error(generalising.circle(x, y, ramp=0.01)) <= around.max() ** 2 + coarse


def test_error_falls_as_the_square_of_the_arc():
    """Equal arcs, between n = 20 and n = 80."""
    errors = [error(generalising.circle(even(n), label(even(n)))) for n in (20, 80)]
    assert np.log(errors[0] / errors[1]) / np.log(4) == pytest.approx(2, abs=0.1)


def test_as_printed_it_does_not_interpolate():
    x, y = data(np.random.default_rng(0), 20)
    params = printed.circle(x, y)
    order = np.argsort(np.arctan2(x[:, 1], x[:, 0]))
    assert np.abs(nets.predict(nets.mlp, params, x[order]) - y[order]).max() > 0.5


def test_with_its_bias_mended_width_n_interpolates_but_does_not_generalise():
    for n in (16, 64):
        x = even(n)
        y = label(x)
        params = printed.circle_arcs(x, y)
        tolerance = nets.rounding(params, x)
        assert np.abs(nets.predict(nets.mlp, params, x) - y).max() <= tolerance
        assert nets.gauss_newton(nets.mlp, params, x) == pytest.approx(bounds.two_layer_bias(x, y), rel=4 * tolerance)
        # E y² ∫₀¹ s⁴ ds = 1/10, up to the O(δ) that the label changes within an arc.
        assert error(params) == pytest.approx(0.1, abs=2 * np.pi / n / 4)


def test_other_sets_are_refused():
    with pytest.raises(ArgumentError, match="unit circle"):
        generalising.circle([[1.0, 0.5]], [1.0])
    with pytest.raises(ArgumentError, match="one norm"):
        generalising.circle([[1.0, 0, 0], [0, 1.0, 1]], [1.0, 2.0])
    with pytest.raises(ArgumentError, match="two coordinates"):
        generalising.circle([[1.0]], [1.0])
    with pytest.raises(ArgumentError, match="one label for each distinct x"):
        generalising.circle([[1.0, 0, 1], [1.0, 0, -1]], [1.0, 2.0])
