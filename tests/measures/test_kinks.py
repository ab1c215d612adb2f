"""Kinks: planted, found, and told apart from what is smooth or not felt."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe import measures
from steppe.check import ArgumentError
from steppe.measures import KinkWarning, kinks

from .dense import problem


def test_a_random_point_has_none():
    p = problem("two-layer")
    assert len(kinks(p, p.w0)) == 0


def planted(p, neuron, example):
    """The bias that puts one pre-activation of a two-layer net to zero."""
    params = p.unravel(p.w0)
    bias = params["b1"].at[neuron].set(-(p.x[example] @ params["W1"][neuron]))
    return jnp.concatenate([a.ravel() for a in (params["W1"], params["W2"], bias)])


def test_a_planted_kink_is_found_and_warned_of():
    p = problem("two-layer")
    w = planted(p, neuron=2, example=4)
    found = kinks(p, w)
    assert (len(found), found.matter) == (1, 1)
    (layer,) = found.layers
    assert (layer.name, layer.examples.tolist(), layer.neurons.tolist()) == ("relu 0", [4], [[2]])
    with pytest.warns(KinkWarning, match="1 pre-activations are within rounding of a kink"):
        measures.sharpness(p, w)


def test_a_kink_that_nothing_feels_is_listed_without_a_warning():
    p = problem("two-layer")
    w = planted(p, neuron=2, example=4)
    params = p.unravel(w)
    w = jnp.concatenate([a.ravel() for a in (params["W1"], params["W2"].at[2].set(0.0), params["b1"])])
    found = kinks(p, w)
    assert (len(found), found.matter) == (1, 0)
    measures.sharpness(p, w)  # a warning would be an error


ACTIVATIONS = {
    "relu": (jax.nn.relu, 1),
    "leaky_relu": (jax.nn.leaky_relu, 1),
    "relu6": (jax.nn.relu6, 1),
    "abs": (jnp.abs, 1),
    "maximum": (lambda h: jnp.maximum(h, 0.3 * h), 1),
    "clip": (lambda h: jnp.clip(h, 0.0, 2.0), 1),
    "where": (lambda h: jnp.where(h > 0, h, 0.1 * h), 1),
    "softplus": (jax.nn.softplus, 0),
    "elu": (jax.nn.elu, 0),
    "tanh": (jnp.tanh, 0),
    "softmax": (lambda h: jax.nn.softmax(h)[0], 0),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_any_network_written_in_jax(name):
    """One neuron at zero for one example, in a network under vmap, where examples are the last axis inside."""
    activation, expected = ACTIVATIONS[name]

    def predict(w, x):
        return jax.vmap(lambda row: jnp.sum(activation(w @ row)))(x)

    p = steppe.Problem(
        predict, np.array([[1.0, -1.0], [2.0, 1.0]]), np.array([[2.0, 3.0], [1.0, 1.0]]), np.ones(2), steppe.losses.mse
    )
    found = kinks(p, p.w0)
    assert found.matter == expected
    assert all(layer.examples.tolist() == [1] and layer.neurons.tolist() == [[0]] for layer in found.layers)


def test_inside_a_scan():
    """Two layers as rounds of a scan: the second has its pre-activation at zero."""

    def predict(w, x):
        return jax.lax.scan(lambda h, v: (jax.nn.relu(h - v), None), x, w)[0]

    p = steppe.Problem(predict, np.array([1.0, 2.0]), np.array([3.0, 5.0]), np.ones(2), steppe.losses.mse)
    (layer,) = kinks(p, p.w0).layers
    assert (layer.name, layer.examples.tolist(), layer.matters.tolist()) == ("relu 1", [0], [True])


def test_a_zero_that_no_parameter_moves_is_no_kink():
    p = steppe.Problem(lambda w, x: jax.nn.relu(x @ w), np.ones(2), np.zeros((1, 2)), np.ones(1), steppe.losses.mse)
    assert len(kinks(p, p.w0)) == 0


def absolute():
    return steppe.losses.Loss("absolute", lambda f, y: jnp.sum(jnp.abs(f - y)), lambda shape, y: None)


def test_a_loss_without_a_slope_where_it_is_measured_is_refused():
    x = np.array([[1.0, 2.0], [3.0, 1.0]])
    p = steppe.Problem(lambda w, x: x @ w, np.ones(2), x, x.sum(1) + np.array([0.0, 1.0]), absolute())
    message = "loss must be twice differentiable at the predictions; got \"'absolute', whose slope jumps at 1 of them\""
    with pytest.raises(ArgumentError, match=message):
        measures.sharpness(p, p.w0)


def test_the_same_loss_elsewhere_is_fine():
    x = np.array([[1.0, 2.0], [3.0, 1.0]])
    p = steppe.Problem(lambda w, x: x @ w**2, np.ones(2), x, np.array([1.0, 9.0]), absolute())
    # ½[(w₁² + 2w₂² − 1) + (9 − 3w₁² − w₂²)]: ∇² = diag(−2, 1)
    assert measures.sharpness(p, p.w0).value == pytest.approx(1.0, rel=1e-13)
