"""Separating vectors: the closed forms and the quadratic program separate all points; an inner point is named."""

import numpy as np
import pytest
from cases import theory_nets as nets
from scipy.optimize import linprog

from steppe.check import ArgumentError
from steppe.flattening import separating


def smallest_gap(separation, x):
    products = separation.vectors @ x.T
    own = np.diagonal(products)
    assert np.allclose(own, separation.offsets, rtol=1e-14, atol=0)
    return np.min(own[:, None] - products + np.where(np.eye(len(x)) > 0, np.inf, 0), axis=1)


def test_hypercube_separates_from_every_corner():
    """A gap of 2/√d to all 2^d − 1 others, whichever are in the set."""
    everywhere = nets.cube(5)
    separation = separating.separate(everywhere[:6])
    products = separation.vectors @ everywhere.T
    gaps = np.sort(separation.offsets[:, None] - products, axis=1)[:, 1]
    assert gaps == pytest.approx(separation.gaps, rel=1e-14)
    assert separation.gaps == pytest.approx(2 / np.sqrt(5))


@pytest.mark.parametrize(("d", "n"), [(2, 5), (3, 20), (10, 60)])
def test_sphere_and_program_both_separate(d, n):
    x = np.random.default_rng(d).normal(size=(n, d))
    x *= 3 / np.linalg.norm(x, axis=1, keepdims=True)
    for separation in (separating.sphere(x), separating.widest(x)):
        assert np.linalg.norm(separation.vectors, axis=1) == pytest.approx(1)
        assert smallest_gap(separation, x) == pytest.approx(separation.gaps)
        assert np.all(separation.gaps > 0)
    assert separating.separate(x).vectors == pytest.approx(x / 3)


@pytest.mark.parametrize(("d", "n"), [(2, 12), (3, 25), (6, 40)])
def test_program_agrees_with_linear_programming(d, n):
    """Extreme by the quadratic program exactly when no convex combination of the others gives the point."""
    x = np.random.default_rng(n).normal(size=(n, d))
    for i in range(n):
        others = np.delete(x, i, axis=0)
        found = linprog(
            np.zeros(n - 1), A_eq=np.vstack([others.T, np.ones(n - 1)]), b_eq=np.append(x[i], 1), bounds=(0, None)
        )
        if found.status == 2:  # infeasible: a vertex
            assert np.linalg.norm(separating._nearest(x, i)) == pytest.approx(1)
        else:
            with pytest.raises(ArgumentError, match=f"point {i}, .* in the convex hull of points"):
                separating._nearest(x, i)


def test_program_is_the_widest():
    """No random direction has a larger smallest cosine."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    w = separating.widest(x).vectors[0]
    away = x[0] - x[1:]
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    tries = w + 0.1 * rng.normal(size=(2000, 3))
    tries /= np.linalg.norm(tries, axis=1, keepdims=True)
    assert np.min(away @ w) >= np.max(np.min(tries @ away.T, axis=1))


def test_close_neighbours_on_a_circle():
    """Points h apart have a gap of h²/2 = 5e-9, far above rounding."""
    angle = np.array([0.0, 1e-4, 2e-4, 2.0])
    x = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    for separation in (separating.sphere(x), separating.widest(x)):
        assert separation.gaps[1] == pytest.approx(1 - np.cos(1e-4), rel=1e-6)


def test_inseparable_points_are_named():
    with pytest.raises(ArgumentError, match=r"point 1, .* in the convex hull of points"):
        separating.separate([[0.0], [1.0], [3.0]])
    with pytest.raises(ArgumentError, match="without repeated rows; got 'row 0 twice'"):
        separating.widest([[0.0, 1.0], [0.0, 1.0]])
    with pytest.raises(ArgumentError, match="made of −1 and 1"):
        separating.hypercube([[1.0, 2.0]])
    with pytest.raises(ArgumentError, match="apart by more than rounding"):
        separating.sphere([[1.0, 0.0], [np.cos(1e-9), np.sin(1e-9)]])


def test_a_point_alone():
    assert separating.separate([[0.0, 0.0]]).gaps.tolist() == [1.0]
    assert separating.separate([[2.0, 0.0]]).vectors.tolist() == [[1.0, 0.0]]
