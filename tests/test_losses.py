import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steppe import losses
from steppe.check import ArgumentError

reals = st.floats(-5, 5)


@given(st.lists(st.tuples(reals, reals), min_size=1, max_size=8))
def test_mse_is_twice_half_mse_for_one_output(pairs):
    f, y = (jnp.array(v) for v in zip(*pairs, strict=True))
    np.testing.assert_allclose(losses.mse(f, y), 2 * losses.half_mse(f, y), rtol=1e-15)


def test_vector_outputs():
    f, y = jnp.array([[1.0, 2.0], [3.0, 5.0]]), jnp.zeros((2, 2))
    assert float(losses.mse(f, y)) == (1 + 4 + 9 + 25) / 4
    assert float(losses.half_mse(f, y)) == ((1 + 4) + (9 + 25)) / 2 / 2


def test_cross_entropy_against_numpy():
    f, y = np.random.default_rng(0).normal(size=(6, 4)), np.array([0, 3, 1, 2, 2, 0])
    p = np.exp(f) / np.exp(f).sum(1, keepdims=True)
    expected = -np.log(p[np.arange(6), y]).mean()
    np.testing.assert_allclose(losses.cross_entropy(jnp.asarray(f), jnp.asarray(y)), expected, rtol=1e-14)


@given(st.floats(0.01, 0.49), st.sampled_from([-1.0, 1.0]))
def test_logistic_is_minimal_where_theory_says(p, y):
    """ℓ′(y ln((1 − p)/p)) = 0 (wen2023, definition A.2 with p and 1 − p exchanged)."""
    loss = losses.logistic(smoothing=p)
    at = jnp.asarray(y * np.log((1 - p) / p))
    assert abs(float(jax.grad(loss.example)(at, jnp.asarray(y)))) < 1e-15
    assert float(jax.grad(jax.grad(loss.example))(at, jnp.asarray(y))) == pytest.approx(p * (1 - p), rel=1e-12)


def test_logistic_of_large_outputs_is_finite():
    f = jnp.array([1e4, -1e4])
    assert float(losses.logistic()(f, jnp.array([-1.0, 1.0]))) == 1e4


def test_one_object_for_each_smoothing():
    assert losses.logistic(smoothing=0.2) is losses.logistic(smoothing=0.2)
    assert losses.logistic(smoothing=0.2) != losses.logistic(smoothing=0.3)


@pytest.mark.parametrize("smoothing", [-0.1, 0.5, 1.0, float("nan"), "a"])
def test_bad_smoothing(smoothing):
    with pytest.raises(ArgumentError, match="smoothing"):
        losses.logistic(smoothing=smoothing)


def test_names():
    assert losses.named("mse") is losses.mse
    assert losses.named("logistic:0.2") == losses.logistic(smoothing=0.2)
    with pytest.raises(ArgumentError, match="Did you mean 'mse'"):
        losses.named("mes")
