"""Bad input: refused with the argument, the rule, what came and what to do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe import measures
from steppe.check import ArgumentError

from .dense import problem

MEASURES = [
    measures.sharpness,
    measures.spectral_norm,
    measures.trace,
    measures.fisher_sharpness,
    measures.fisher_trace,
    measures.adaptive_sharpness,
    measures.random_direction_sharpness,
    measures.density,
    measures.kinks,
    measures.Tracker(),
]


def name(measure):
    return getattr(measure, "__name__", type(measure).__name__)


@pytest.mark.parametrize("measure", MEASURES, ids=name)
def test_parameters_that_are_not_finite(measure):
    p = problem("two-layer")
    with pytest.raises(ArgumentError, match="w must be finite; 1 of 56 entries are NaN"):
        measure(p, p.w0.at[3].set(jnp.nan))


@pytest.mark.parametrize("measure", MEASURES, ids=name)
def test_integer_parameters(measure):
    p = problem("two-layer")
    with pytest.raises(ArgumentError, match=r"w must be of a real floating type; got 'int64'. Convert it: w.astype"):
        measure(p, np.ones(p.w0.size, dtype=int))


@pytest.mark.parametrize("measure", MEASURES, ids=name)
def test_a_network_that_draws_at_random(measure):
    rng = np.random.default_rng(0)
    p = steppe.Problem(
        lambda w, x: x @ w * rng.normal(), np.ones(2), np.ones((3, 2)), np.ones(3), steppe.losses.half_mse
    )
    with pytest.raises(ArgumentError, match=r"predict must be the same function of \(params, x\) at every call"):
        measure(p, p.w0)


def test_a_network_that_calls_out_to_a_generator():
    rng = np.random.default_rng(0)

    def predict(w, x):
        noise = jax.pure_callback(lambda: rng.normal(), jax.ShapeDtypeStruct((), np.float64))
        return x @ w + noise

    p = steppe.Problem(predict, np.ones(2), np.ones((3, 2)), np.ones(3), steppe.losses.half_mse)
    with pytest.raises(ArgumentError, match="between two calls"):
        measures.sharpness(p, p.w0)


def test_a_constant_key_is_no_randomness():
    key = jax.random.key(0)

    def predict(w, x):
        return x @ w * jax.random.bernoulli(key, 0.9)

    p = steppe.Problem(predict, np.ones(2), np.ones((3, 2)), np.ones(3), steppe.losses.half_mse)
    assert measures.sharpness(p, p.w0).value == pytest.approx(2.0, rel=1e-12)


def test_a_wrong_shape():
    p = problem("two-layer")
    with pytest.raises(ArgumentError, match="w must be a flat vector of 56 parameters; got 'shape"):
        measures.sharpness(p, np.ones(3))


def test_no_problem():
    with pytest.raises(ArgumentError, match=r"problem must be a steppe\.Problem"):
        measures.sharpness(lambda w: w, np.ones(3))


def test_empty_data():
    with pytest.raises(ArgumentError, match="y must be an array with one row an example, not empty"):
        steppe.Problem(lambda w, x: x @ w, np.ones(2), np.ones((0, 2)), np.ones(0), steppe.losses.mse)


def test_a_loss_that_is_not_finite():
    p = steppe.Problem(
        lambda w, x: jnp.log(x @ w), np.array([-1.0, 1.0]), np.ones((1, 2)), np.ones(1), steppe.losses.mse
    )
    with pytest.raises(ArgumentError, match="are the parameters, or the loss, finite"):
        measures.sharpness(p, p.w0)
