"""Kinks: planted, found, and told apart from what is smooth or not felt."""

import importlib
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles.dense_curvature import problem

import steppe
from steppe import measures
from steppe.measures import KinkWarning, kinks


def test_a_random_point_has_none():
    p = problem("two-layer")
    assert len(kinks(p, p.w0)) == 0


def planted(p, neuron, example):
    """The bias that puts one pre-activation of a two-layer net to zero."""
    params = p.unravel(np.array(p.w0))
    params["b1"][neuron] = -(np.asarray(p.x[example]) @ params["W1"][neuron])
    return flat(params)


def flat(params):
    return jnp.asarray(np.concatenate([params[name].ravel() for name in sorted(params)]))


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
    params = p.unravel(np.array(w))
    params["W2"][2] = 0.0
    w = flat(params)
    found = kinks(p, w)
    # Without a way out the gradient stays, but ∂²L/∂W₂∂W₁ = (f − y) relu′(h) x jumps: unless the example is fitted.
    assert (len(found), found.matter) == (1, 1)
    fitted = p.on(p.x, p.predictions(w))
    found = kinks(fitted, w)
    assert (len(found), found.matter) == (1, 0)
    measures.sharpness(fitted, w)  # a warning would be an error


ACTIVATIONS = {
    "relu": (jax.nn.relu, 1),
    "leaky_relu": (jax.nn.leaky_relu, 1),
    "relu6": (jax.nn.relu6, 1),
    "abs": (jnp.abs, 1),
    "maximum": (lambda h: jnp.maximum(h, 0.3 * h), 1),
    "clip": (lambda h: jnp.clip(h, 0.0, 2.0), 1),
    "where": (lambda h: jnp.where(h > 0, h, 0.1 * h), 1),
    "masked": (lambda h: h * jax.jit(lambda h: h > 0)(h), 1),
    "cube": (lambda h: jax.nn.relu(h) ** 3, 0),
    "softplus": (jax.nn.softplus, 0),
    "square": (lambda h: jax.nn.relu(h) ** 2, 1),
    "elu": (jax.nn.elu, 1),
    "selu": (jax.nn.selu, 1),
    "crelu": (lambda h: jax.nn.relu(h) - 0.5 * jax.nn.relu(-h), 2),
    "pooled, the largest": (lambda h: jnp.max(jax.nn.relu(-h)), 1),
    "pooled, not the largest": (lambda h: jnp.max(jax.nn.relu(h)), 0),
    "tanh": (jnp.tanh, 0),
    "softmax": (lambda h: jax.nn.softmax(h)[0], 0),
}


SWITCHES = ["relu", "leaky_relu", "relu6", "abs", "maximum", "clip", "where", "square", "elu"]


# The others, and one that is below as well.
@pytest.mark.parametrize("name", ["relu", *(name for name in ACTIVATIONS if name not in SWITCHES)])
def test_any_network_written_in_jax(name):
    """One neuron at zero for one example, in a network under vmap, where examples are the last axis inside."""
    activation, expected = ACTIVATIONS[name]

    def predict(w, x):
        return jax.vmap(lambda row: jnp.sum(activation(w @ row)))(x)

    p = steppe.Problem(
        predict, np.array([[1.0, -1.0], [2.0, 1.0]]), np.array([[2.0, 3.0], [1.0, 1.0]]), np.ones(2), steppe.losses.mse
    )
    found = kinks(p, p.w0, sharpness=10.0)  # as for most of them; below it is measured
    assert found.matter == expected
    assert all(layer.examples.tolist() == [1] and layer.neurons.tolist() == [[0]] for layer in found.layers)


def test_inside_a_scan():
    """Two layers as rounds of a scan: the second has its pre-activation at zero."""

    def predict(w, x):
        return jax.lax.scan(lambda h, v: (jax.nn.relu(h - v), None), x, w)[0]

    p = steppe.Problem(predict, np.array([1.0, 2.0]), np.array([3.0, 5.0]), np.ones(2), steppe.losses.mse)
    (layer,) = kinks(p, p.w0).layers
    assert (layer.name, layer.examples.tolist(), layer.matters.tolist()) == ("relu 1", [0], [True])


@pytest.mark.parametrize("size", [None, 2], ids=["one at a time", "two at a time"])
def test_a_map_over_the_examples(size):
    """Three of them, so that two at a time leave one over."""

    def predict(w, x):
        return jax.lax.map(lambda row: jnp.sum(jax.nn.relu(w @ row)), x, batch_size=size)

    W, X = np.array([[1.0, -1.0], [2.0, 1.0]]), np.array([[2.0, 3.0], [0.5, -4.0], [1.0, 1.0]])
    p = steppe.Problem(predict, W, X, np.ones(3), steppe.losses.mse)
    (layer,) = kinks(p, p.w0).layers
    assert layer.examples.tolist() == ([2] if size is None else [-1])  # not known where they are counted in pairs
    assert layer.matters.tolist() == [True]
    w = p.w0 + 0.1
    found = measures.sharpness(p, w)  # a warning would be an error
    assert found.lower <= np.linalg.eigvalsh(jax.jit(jax.hessian(p.loss))(w))[-1] <= found.upper


def test_a_zero_that_no_parameter_moves_is_no_kink():
    p = steppe.Problem(lambda w, x: jax.nn.relu(x @ w), np.ones(2), np.zeros((1, 2)), np.ones(1), steppe.losses.mse)
    assert len(kinks(p, p.w0)) == 0


W, V = np.array([[1.0, 0.5], [-1.0, 0.3]]), np.array([1.0, 2.0])
INPUTS = np.array([[2.0, 2.0], [1.0, 0.3], [0.5, -1.0], [-1.0, 2.0]])
RESIDUALS = {"none fitted": np.ones(4), "the kinked one fitted": np.array([0.0, 1.0, 1.0, 1.0]), "all": np.zeros(4)}


@cache  # one function for each, so that compiled code is shared
def network(activation):
    """Under vmap, where examples are the last axis inside."""
    return lambda params, x: jax.vmap(lambda row: activation(params["W"].T @ row) @ params["v"])(x)


def kinked(activation, residuals, dtype=np.float64):
    """The first neuron is at 0 on the first example."""
    params = {"W": W.astype(dtype), "v": V.astype(dtype)}
    y = np.asarray(jax.jit(network(activation))(params, INPUTS.astype(dtype)), dtype) - residuals.astype(dtype)
    return steppe.Problem(network(activation), params, INPUTS.astype(dtype), y, steppe.losses.half_mse)


@eqx.filter_jit
def dense_hessian(p, w):
    return jax.jit(jax.hessian(p.loss))(w)


def relative_jump(p):
    """‖H₊ − H₋‖/λ_max, the larger of those of two directions, in float64 a step of 1e-9 away."""
    w = np.asarray(p.w0, float)
    wide = steppe.Problem(p.predict, {"W": W, "v": V}, INPUTS, np.asarray(p.y, float), p.loss_function)
    directions = np.random.default_rng(0).normal(size=(2, w.size))
    above, below = (np.stack([dense_hessian(wide, w + s * d) for d in directions]) for s in (1e-9, -1e-9))
    return np.linalg.norm(above - below, 2, axis=(1, 2)).max() / np.linalg.eigvalsh(above).max()


# Every activation in float64. The precision enters by tolerances, an activation by its equations: in float32 one whose
# slope jumps and is known by its name, one of a primitive, and one whose second derivative jumps.
IN_BOTH = [*((name, np.float64) for name in SWITCHES), *((name, np.float32) for name in ("relu", "clip", "square"))]


@pytest.mark.parametrize("fit", RESIDUALS)
@pytest.mark.parametrize(("name", "dtype"), IN_BOTH)
def test_a_kink_matters_where_the_hessian_jumps(name, fit, dtype):
    """Against dense Hessians to both sides: the Jacobian of a fitted example jumps, the second derivative of relu²
    only counts where the example is not fitted."""
    p = kinked(ACTIVATIONS[name][0], RESIDUALS[fit], dtype)
    jump = relative_jump(p)
    assert jump < 1e-6 or jump > 1e-2  # far from 1e-3
    found = kinks(p, p.w0)
    assert (len(found), found.matter) == (1, int(jump > 1e-3))
    (layer,) = found.layers
    assert (layer.examples.tolist(), layer.neurons.tolist()) == ([0], [[0]])
    # The jump is at most what any rtol would take for one.
    assert kinks(p, p.w0, rtol=4 * jump + 1e-5).matter == 0 or name == "abs"


@pytest.mark.parametrize("fit", RESIDUALS)
@pytest.mark.parametrize(("name", "dtype"), [("relu", np.float64), ("square", np.float32)])
def test_sharpness_warns_where_a_kink_matters(name, fit, dtype):
    p = kinked(ACTIVATIONS[name][0], RESIDUALS[fit], dtype)
    if kinks(p, p.w0).matter:
        with pytest.warns(KinkWarning):
            measures.sharpness(p, p.w0)
    else:
        measures.sharpness(p, p.w0)  # a warning would be an error


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_one_example_of_many_does_not_matter(dtype):
    """The jump is 1/n of an example's curvature: 747 of 60000 examples at MNIST's size are below rtol, and warn not."""
    rng = np.random.default_rng(0)
    n, m = 4000, 20
    x = rng.normal(size=(n, 3)).astype(dtype)
    W1 = rng.normal(size=(3, m)).astype(dtype)
    W1[:, 0] = np.cross(x[0], x[1])  # one neuron at 0 on two examples
    params = {"W": W1, "v": rng.normal(size=m).astype(dtype)}
    y = rng.normal(size=n)

    def predict(params, x):
        return jax.nn.relu(x @ params["W"]) @ params["v"]

    p = steppe.Problem(predict, params, x, y, steppe.losses.half_mse)
    found = kinks(p, p.w0)
    assert len(found) >= 2
    assert found.matter == 0
    measures.sharpness(p, p.w0)
    few = p.on(x[:5], y[:5])
    assert kinks(few, few.w0).matter == 2
    # More precision asked for: in float64 the same kinks are seen, and said.
    assert (kinks(p, p.w0, rtol=1e-7).matter == len(found)) == (dtype == np.float64)


def test_in_blocks_as_all_at_once(monkeypatch):
    p = kinked(jax.nn.relu, RESIDUALS["the kinked one fitted"])
    many = p.on(np.tile(INPUTS, (5, 1)), np.tile(p.y, 5))
    whole = kinks(many, many.w0)
    module = importlib.import_module("steppe.curvature._kinks")
    monkeypatch.setattr(module, "_MEMORY", 16 * 3)  # three examples of two neurons, one for a product
    pieces = kinks(many, many.w0)
    assert whole.matter == pieces.matter == 5
    assert whole.layers[0].examples.tolist() == pieces.layers[0].examples.tolist() == [0, 4, 8, 12, 16]


def test_of_the_parameters_alone():
    """A clipped parameter: listed once, without an example."""

    def predict(params, x):
        return x @ jax.nn.relu(params)

    p = steppe.Problem(predict, np.array([0.0, 1.0]), INPUTS, np.ones(4), steppe.losses.mse)
    (layer,) = kinks(p, p.w0).layers
    assert (layer.examples.tolist(), layer.neurons.tolist(), layer.matters.tolist()) == ([-1], [[0]], [True])


def test_through_batch_statistics():
    """Examples that see each other: all of them have a part in the jump."""

    def predict(params, x):
        h = jax.nn.relu(x @ params["W"])
        return (h - h.mean(0, keepdims=True)) @ params["v"]

    p = steppe.Problem(predict, {"W": W, "v": V}, INPUTS, np.ones(4), steppe.losses.half_mse)
    found = kinks(p, p.w0)
    assert (len(found), found.matter) == (1, 1)


MEASURES = {
    "sharpness": measures.sharpness,
    "spectral_norm": measures.spectral_norm,
    "top_eigenvalues": lambda p, w: measures.top_eigenvalues(p, w, k=2),
    "fisher_sharpness": measures.fisher_sharpness,
}


@pytest.mark.parametrize("name", MEASURES)
def test_the_warning_points_at_the_caller(name):
    p = kinked(jax.nn.relu, RESIDUALS["none fitted"])
    with pytest.warns(KinkWarning) as caught:
        MEASURES[name](p, p.w0)
    assert [w.filename for w in caught] == [__file__]
