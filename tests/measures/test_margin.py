import numpy as np
import pytest
from dense_curvature import problem

from steppe import measures
from steppe.check import ArgumentError


def test_margins_of_classes_by_hand():
    p = problem("tanh-cross-entropy")
    f, y = np.asarray(p.predictions(p.w0)), np.asarray(p.y)
    by_hand = [row[c] - np.delete(row, c).max() for row, c in zip(f, y, strict=True)]
    assert measures.margin(p, p.w0).value == pytest.approx(min(by_hand), rel=1e-14)
    assert measures.margin(p, p.w0, quantile=0.5).value == pytest.approx(np.median(by_hand), rel=1e-12)
    wrong = (np.asarray(by_hand) < 0).mean()
    assert measures.zero_one_error(p, p.w0).value == wrong


@pytest.mark.parametrize("name", ["two-layer", "tanh-logistic"])
def test_margins_of_signs(name):
    p = problem(name)
    by_hand = np.asarray(p.predictions(p.w0)) * np.asarray(p.y)
    assert measures.margin(p, p.w0).value == pytest.approx(by_hand.min(), rel=1e-14)


def test_a_quantile_is_a_fraction():
    p = problem("two-layer")
    with pytest.raises(ArgumentError, match="quantile must be between 0 and 1; got 2"):
        measures.margin(p, p.w0, quantile=2)


@pytest.mark.parametrize("order", [1, 2, "nuclear"])
def test_distance_is_the_norm_of_the_difference(order):
    p = problem("tanh-half-mse")
    w = p.w0 + np.random.default_rng(0).normal(size=p.w0.size)
    assert measures.distance(p, w, order=order) == measures.norm(p, w - p.w0, order=order)
    assert measures.distance(p, w, to=w).value == 0.0
    assert measures.distance(p, w, to=p.unravel(p.w0)) == measures.distance(p, w)
