"""Which points are vertices of their hull: planted answers, Qhull, and exact feasibility as independent routes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

from steppe.check import ArgumentError
from steppe.data import ellipsoid, is_extreme


@pytest.mark.parametrize(("d", "n"), [(2, 100), (3, 120), (5, 120)])
def test_agrees_with_qhull(d, n):
    x = np.random.default_rng(d).normal(size=(n, d))
    vertices = np.zeros(n, dtype=bool)
    vertices[ConvexHull(x).vertices] = True
    assert np.array_equal(is_extreme(x), vertices)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(*[st.integers(-2, 2)] * 3), min_size=1, max_size=18))
def test_agrees_with_feasibility_on_a_lattice(rows):
    """Points on edges, in faces, repeated and in degenerate sets: x inside when it is a combination of the others."""
    x = np.array(rows, dtype=float)
    unique = np.unique(x, axis=0)
    extreme = is_extreme(unique)
    for i, point in enumerate(unique):
        others = np.delete(unique, i, axis=0)
        if len(others):
            A = np.vstack([others.T, np.ones(len(others))])
            inside = linprog(np.zeros(len(others)), A_eq=A, b_eq=np.append(point, 1), bounds=(0, None)).status == 0
        else:
            inside = False
        assert extreme[i] != inside
    for row, flag in zip(x, is_extreme(x), strict=True):
        assert flag == extreme[np.flatnonzero(np.all(unique == row, axis=1))[0]]


def test_planted_inner_points():
    rng = np.random.default_rng(0)
    x, _, _, _ = ellipsoid(6, 80, key=1)
    weights = rng.dirichlet(np.ones(80), size=40)
    mixed = np.concatenate([x, weights @ x, (x[:20] + x[20:40]) / 2])
    order = rng.permutation(len(mixed))
    assert np.array_equal(is_extreme(mixed[order]), order < 80)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_units_do_not_matter(scale):
    x = np.random.default_rng(3).normal(size=(40, 3))
    assert np.array_equal(is_extreme(scale * (x + 5)), is_extreme(x))


def test_spheres_and_hypercubes_are_extreme():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 20))
    assert is_extreme(x / np.linalg.norm(x, axis=1, keepdims=True)).all()
    assert is_extreme(np.unique(np.sign(rng.normal(size=(300, 12))), axis=0)).all()
    assert is_extreme(np.ones((3, 2))).all()
    assert is_extreme([[0.0], [1.0], [2.0], [2.0]]).tolist() == [True, False, True, True]


def test_wrong_shapes_are_refused():
    with pytest.raises(ArgumentError, match="x must be of shape"):
        is_extreme([1.0, 2.0])
    with pytest.raises(ArgumentError, match="x must be finite"):
        is_extreme([[np.inf, 1.0]])
