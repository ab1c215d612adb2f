"""Inner weights of a given correlation, by law; the numbers of Definition 2 for them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steppe.check import ArgumentError
from steppe.data import orthonormal
from steppe.papers.multi_index.theory import alignment, conditional_covariance, conditions, correlated, tilted, within

SIZES = st.tuples(st.integers(1, 3), st.integers(6, 12), st.integers(1, 30))
NU = st.floats(0.0, 1.0)


@given(SIZES, NU, st.booleans(), st.integers(0, 1000))
@settings(max_examples=60)
def test_every_weight_has_the_correlation(sizes, nu, one_sided, seed):
    r, d, m = sizes
    U = orthonormal(r, d, key=seed)
    W = correlated(m, U, nu, one_sided=one_sided, key=seed)
    np.testing.assert_allclose(np.linalg.norm(W, axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(W @ U.T, axis=1), nu, atol=1e-12)
    if one_sided:
        assert (W @ U.T >= -1e-15).all()
    np.testing.assert_array_equal(W, correlated(m, U, nu, one_sided=one_sided, key=seed))


def test_both_sides_and_all_other_directions_are_equally_likely():
    U = orthonormal(1, 4, key=0)
    W = correlated(20_000, U, 0.6, key=1)
    side = W @ U[0] > 0
    # Four standard errors of a share of one half, and of entries of variance (1 − ν²)/3.
    assert abs(side.mean() - 0.5) <= 4 * 0.5 / np.sqrt(len(W))
    outside = W - (W @ U.T) @ U
    assert np.abs(outside.mean(axis=0)).max() <= 4 * np.sqrt(0.64 / 3 / len(W))


@given(SIZES, NU, st.integers(0, 1000))
@settings(max_examples=60)
def test_no_vector_of_a_tilted_subspace_is_closer(sizes, nu, seed):
    r, d, _ = sizes
    U = orthonormal(r, d, key=seed)
    S = tilted(U, nu, key=seed)
    np.testing.assert_allclose(S @ S.T, np.eye(d - r), atol=1e-12)
    W = within(3 * d, S, key=seed)
    np.testing.assert_allclose(np.linalg.norm(W, axis=1), 1.0, rtol=1e-12)
    assert alignment(W, U) == pytest.approx(nu, abs=1e-7)  # a cosine from a singular value near 0 or 1
    assert np.linalg.norm(W @ U.T, axis=1).max() <= nu + 1e-12
    # Lemma 10 under Definition 2: what the activations do not determine of Ux.
    np.testing.assert_allclose(conditional_covariance(W, U), (1 - nu**2) * np.eye(r), atol=1e-7)


def test_the_experiments_weights_span_everything():
    """Section 6.1 prescribes the correlation of each weight, Definition 2 that of their span, which differs."""
    U = orthonormal(1, 6, key=0)
    W = correlated(30, U, 0.1, key=0)
    met = conditions(W, U)
    assert met.alignment == pytest.approx(1.0, abs=1e-12)
    cosines = [W[i] @ W[j] for i in range(30) for j in range(i)]
    assert met.closest == pytest.approx(max(cosines), abs=1e-12)


def test_conditional_covariance_is_that_of_a_regression():
    rng = np.random.default_rng(0)
    U, W = orthonormal(2, 6, key=rng), rng.normal(size=(3, 6))
    x = rng.standard_normal((40_000, 6))
    left = x @ U.T - x @ W.T @ np.linalg.lstsq(x @ W.T, x @ U.T)[0]
    # Entries of a sample covariance with variances at most 1: four standard errors √(2/n).
    np.testing.assert_allclose(left.T @ left / len(x), conditional_covariance(W, U), atol=4 * np.sqrt(2 / len(x)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: correlated(3, [[1.0, 0.0]], 1.5), "nu must be from 0 to 1"),
        (lambda: correlated(3, [[1.0, 1.0]], 0.5), "U must be orthonormal"),
        (lambda: correlated(3, np.eye(2), 0.5), "nu must be 1 where U spans all"),
        (lambda: correlated(0, [[1.0, 0.0]], 0.5), "m must be"),
        (lambda: tilted(np.eye(3)[:2], 0.5), "U must be of at most"),
        (lambda: conditions([[0.0, 0.0]], [[1.0, 0.0]]), "without rows of zeros"),
        (lambda: conditions([[1.0, 0.0]], [[1.0, 0.0, 0.0]]), "as wide as U"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_all_directions_at_once():
    W = correlated(4, np.eye(3), 1.0)
    np.testing.assert_allclose(np.linalg.norm(W, axis=1), 1.0, rtol=1e-12)
