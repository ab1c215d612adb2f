"""The verdict on planted curves."""

import numpy as np
import pytest

from steppe.check import ArgumentError
from steppe.rates import u_shape

X = np.linspace(-1, 1, 21)


@pytest.mark.parametrize(
    ("values", "mark"),
    [
        (X**2, "✓"),
        ((X - 0.3) ** 2, "✓"),  # sides 1.69 and 0.49
        (np.where(X < 0.5, 0.5 - X, 0.3 * (X - 0.5)), "(✓)"),  # sides 1.5 and 0.15
        (-X, "×"),
        (np.exp(-X), "×"),
        (X, "×"),
        (np.ones(21), "(×)"),
        (X[:4] ** 2, "(×)"),  # too few to know the jitter
    ],
    ids=["middle", "right of it", "shallow side", "falling", "falling ever slower", "rising", "flat", "four points"],
)
def test_planted(values, mark):
    assert u_shape(values).mark == mark


def test_noise_does_not_make_a_u():
    """Falling curves and flat ones with noise: never ✓, seldom (✓)."""
    rng = np.random.default_rng(0)
    falling = [u_shape(-X + 0.1 * rng.normal(size=21)).mark for _ in range(200)]
    flat = [u_shape(0.1 * rng.normal(size=21)).mark for _ in range(200)]
    assert "✓" not in falling
    assert falling.count("(✓)") <= 10
    # Of two medians of three one is seldom three deviations of one value above the least of all medians.
    assert flat.count("✓") <= 20


def test_noise_does_not_hide_a_clear_u():
    rng = np.random.default_rng(1)
    marks = [u_shape(X**2 + 0.05 * rng.normal(size=21)).mark for _ in range(200)]
    assert marks.count("✓") >= 190


def test_the_sides_and_the_best():
    found = u_shape(X**2)
    assert found.best in (9, 10, 11)  # the median of three is flat there
    assert found.left == pytest.approx(found.right)
    assert u_shape(-X).right == 0


@pytest.mark.parametrize("values", [[], [3, 2, np.nan, 2, 3], [3, 2, 1, 2, np.inf], np.ones((3, 3)), 1.0])
def test_bad_input(values):
    with pytest.raises(ArgumentError, match="runs that reached"):
        u_shape(values)
