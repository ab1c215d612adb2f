"""Diagonal networks as problems: values, gradients by hand, and data that no weights fit."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steppe.check import ArgumentError
from steppe.networks import diagonal_problem, two_factor_problem

SEED = st.integers(0, 2**32 - 1)
GRADIENT = jax.jit(lambda p, w: jax.grad(p.loss)(w))


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@settings(max_examples=8)
@given(seed=SEED)
def test_shared_weights_have_the_gradient_of_the_formula(depth, seed):
    """∇L = h L x ⊙ w^{L−1}, written out, and its mean over examples."""
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(2, 3)), rng.normal(size=3)
    y = x @ np.abs(rng.normal(size=3))
    p = diagonal_problem(x, y, depth=depth)
    residual = x @ w**depth - y
    np.testing.assert_allclose(p.loss(w), np.mean(residual**2) / 2, rtol=1e-13)
    expected = (residual[:, None] * depth * x * w ** (depth - 1)).mean(axis=0)
    np.testing.assert_allclose(GRADIENT(p, w), expected, rtol=1e-11, atol=1e-12)


@settings(max_examples=8)
@given(SEED)
def test_two_factors_have_the_gradient_of_the_formula(seed):
    rng = np.random.default_rng(seed)
    x, y, u, v = rng.normal(size=(3, 4)), rng.normal(size=3), rng.normal(size=4), rng.normal(size=4)
    p = two_factor_problem(x, y, u=u, v=v)
    pull = x.T @ (x @ (u * v) - y) / 3
    np.testing.assert_allclose(GRADIENT(p, p.w0), np.concatenate([pull * v, pull * u]), rtol=1e-11, atol=1e-12)


def test_two_equal_factors_move_as_shared_weights_do():
    """With u = v the gradient in u is half that of w in ½(⟨w², x⟩ − y)²."""
    x, y, w = np.array([1.0, 0.3]), 0.7, np.array([0.4, 0.9])
    both, one = two_factor_problem(x, y, u=w, v=w), diagonal_problem(x, y, start=w)
    np.testing.assert_allclose(2 * GRADIENT(both, both.w0)[:2], GRADIENT(one, one.w0), rtol=1e-14)


def test_a_start_may_be_a_number_or_a_vector():
    assert diagonal_problem([1.0, 2.0], 1.0, start=0.3).w0.tolist() == [0.3, 0.3]
    assert diagonal_problem([1.0, 2.0], 1.0, start=[0.1, 0.2]).w0.tolist() == [0.1, 0.2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: diagonal_problem([0.0, 0.0], 1.0), "x must be not all zero"),
        (lambda: diagonal_problem([1.0, 2.0], -1.0), "y must be ⟨u, x⟩ for some u ≥ 0"),
        (lambda: diagonal_problem([[1.0, 0.0], [1.0, 0.0]], [1.0, 2.0]), "y must be"),
        (lambda: two_factor_problem([[1.0], [1.0]], [1.0, 2.0]), "y must be ⟨u, x⟩ for some u"),
        (lambda: two_factor_problem([[0.0, 0.0]], [0.0]), "x must be not all zero"),
        (lambda: diagonal_problem([1.0, np.nan], 1.0), "x must be finite"),
        (lambda: diagonal_problem([1.0], np.inf), "y must be finite"),
        (lambda: diagonal_problem([[1.0, 2.0]], [1.0, 2.0]), "x must be of shape"),
        (lambda: diagonal_problem([1.0], 1.0, depth=0), "depth must be a whole number ≥ 1"),
        (lambda: diagonal_problem([1.0], 1.0, start=[1.0, 2.0]), "start must be a number or a vector of 1"),
    ],
)
def test_what_no_weights_fit_is_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_an_odd_depth_fits_any_sign():
    p = diagonal_problem([1.0, 2.0], -8.0, depth=3, start=[-2.0, 0.0])
    assert float(p.loss(p.w0)) == 0.0
