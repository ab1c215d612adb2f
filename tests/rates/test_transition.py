"""Planted corners are found, with intervals that cover them as often as they say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steppe.check import ArgumentError
from steppe.rates import corner, transition


def planted(rates, corner, slope=-1.0, level=20.0):
    return level * np.maximum(1.0, rates / corner) ** slope


@given(st.floats(0.8, 3.0), st.floats(-2.0, -0.3), st.floats(0.1, 100.0))
def test_without_noise(corner, slope, level):
    """At least two of the twelve rates on each side: then only one corner fits."""
    rates = np.arange(1, 13) / 3
    fit = transition(rates, planted(rates, corner, slope, level))
    # Places of the corner are 50 to a distance, at most ln 2/50 apart.
    assert fit.rate == pytest.approx(corner, rel=0.015)
    assert fit.slope == pytest.approx(slope, rel=0.05)
    assert fit.level == pytest.approx(level, rel=0.02)
    assert fit.found


def test_intervals_cover():
    """95% intervals under normal noise: of 300 at least 90% and not all, eight standard errors of a binomial."""
    rng, rates = np.random.default_rng(0), np.arange(1, 13) / 4
    covered = widths = 0
    for _ in range(300):
        corner = rng.uniform(0.7, 1.6)
        fit = transition(rates, planted(rates, corner) * np.exp(0.05 * rng.normal(size=12)))
        covered += fit.lower <= corner <= fit.upper
        widths += fit.upper - fit.lower
    assert 270 <= covered < 300
    assert widths / 300 < 0.5  # of use: narrower than two distances of the grid


def test_no_corner_in_noise():
    """A constant is given up at the 5% level: in 200 draws seldom, 0.05 · 200 plus four standard errors."""
    rng, rates = np.random.default_rng(1), np.arange(1, 13) / 4
    found = [transition(rates, np.exp(0.05 * rng.normal(size=12))).found for _ in range(200)]
    # Three places to choose the corner among make the test a little more generous than its level.
    assert sum(found) <= 10 + 4 * np.sqrt(10) + 10
    flat = transition(rates, np.ones(12))
    assert not flat.found
    assert (flat.lower, flat.upper) == (0.0, np.inf)


def test_several_runs_at_the_same_rates():
    """Three at each, the last one too: no corner lies at the last rate, where nothing would be left beyond it."""
    rates = np.repeat(np.arange(1, 9) / 4, 3)
    fit = transition(rates, planted(rates, 1.1))
    assert fit.found
    assert fit.rate == pytest.approx(1.1, rel=0.02)  # places tried between two rates are 0.02 apart in log η


def test_of_a_sweep():
    """The corner of a table of ends is that of the rates up to 3 η_c that reached the goal."""
    lr = np.arange(1, 21) / 4
    reached = lr != 1.5
    values = np.where(reached & (lr <= 3), planted(lr, 1.1), 1e9)
    fit = corner({"lr": lr, "outcome": np.where(reached, 0, 2), "other": values}, 1.0, "other")
    kept = reached & (lr <= 3)
    assert fit == transition(lr[kept], values[kept])
    assert fit.rate == pytest.approx(1.1, rel=0.02)
    assert corner({"lr": lr, "outcome": np.full(20, 2), "other": values}, 1.0, "other") is None
    for wrong in (-1.0, 0.0, np.nan):  # a saddle has no positive sharpness
        assert (
            corner({"lr": lr, "outcome": np.zeros(20), "other": np.where(lr == 1, wrong, values)}, 1.0, "other") is None
        )


@pytest.mark.parametrize("confidence", [0, 1, 95, np.nan])
def test_no_confidence(confidence):
    with pytest.raises(ArgumentError, match="confidence"):
        transition(np.arange(1, 7), np.ones(6), confidence=confidence)


def test_order_does_not_matter():
    rates = np.arange(1, 13) / 4
    values = planted(rates, 1.1)
    assert transition(rates[::-1], values[::-1]) == transition(rates, values)


@pytest.mark.parametrize(
    ("rates", "values"),
    [
        ([1, 2, 3], [1, 1, 1]),
        ([0, 1, 2, 3, 4], [1] * 5),
        ([1] * 5, [1] * 6),
        ([1] * 6, [1] * 6),
        (1.0, 1.0),
        ([[1, 2, 3, 4, 5]], [[1] * 5]),
        ([1, 2, 3, 4, 5], [1, 1, 1, 1, np.inf]),
    ],
)
def test_bad_input(rates, values):
    with pytest.raises(ArgumentError):
        transition(rates, values)
