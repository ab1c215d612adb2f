"""Homogeneous activations: numpy and JAX agree, derivatives are those of autodiff, and flatten finds the degree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe.activations import Homogeneous, leaky, linear, monomial, quadratic, rectifier, relu, relu_power
from steppe.check import ArgumentError
from steppe.flattening import features
from steppe.networks import TwoLayer

FAMILY = [rectifier, leaky(0.1), relu_power(2), relu_power(2.5), quadratic, monomial(3), monomial(4), linear]
Z = np.array([-2.0, -0.5, 0.0, 0.3, 1.7])


@pytest.mark.parametrize("sigma", FAMILY, ids=str)
def test_values_and_derivatives(sigma):
    activation = sigma.activation
    np.testing.assert_allclose(activation(jnp.asarray(Z)), sigma(Z), rtol=1e-14)
    np.testing.assert_allclose(sigma(3 * Z), 3**sigma.degree * sigma(Z), rtol=1e-13)
    away = jnp.asarray(Z[Z != 0])
    slopes = jax.jit(jax.vmap(jax.grad(activation.value)))(away)
    np.testing.assert_allclose(activation.slope(away), slopes, rtol=1e-13)
    np.testing.assert_allclose(sigma.slope(away), slopes, rtol=1e-13)
    bends = jax.jit(jax.vmap(jax.grad(jax.grad(activation.value))))(away)
    np.testing.assert_allclose(activation.curvature(away), bends, rtol=1e-13, atol=1e-15)
    assert np.isfinite(jax.grad(activation.value)(0.0))


def test_known_ones():
    assert rectifier.activation is relu
    assert quadratic.activation is monomial(2).activation
    assert leaky(0.1).activation.leak == 0.1
    np.testing.assert_array_equal(rectifier.power(3)(Z), relu_power(3)(Z))


@pytest.mark.parametrize("sigma", [rectifier, quadratic], ids=str)
@pytest.mark.parametrize("bias", [False, True])
def test_flatten_reaches_the_cost_of_the_paper(sigma, bias):
    """Σ_k q_k |a_k|^p is what steppe.flatten finds by itself, the loss without ½."""
    rng = np.random.default_rng(0)
    params = {"W1": rng.normal(size=(5, 3)), "W2": rng.normal(size=5)} | ({"b1": rng.normal(size=5)} if bias else {})
    x, net = rng.normal(size=(6, 3)), TwoLayer(bias=bias, activation=sigma.activation)
    p = steppe.Problem(net, params, x, np.asarray(net(params, jnp.asarray(x))), steppe.losses.mse)
    phi, q, power = features(params["W1"], x, sigma, b=params.get("b1"))
    np.testing.assert_allclose(phi @ params["W2"], p.y, rtol=1e-12)
    best = steppe.flatten(p, p.w0)
    assert best.layers[0].degree == sigma.degree
    assert best.value == pytest.approx(q @ np.abs(params["W2"]) ** power, rel=1e-12)


def test_wrong_degree():
    with pytest.raises(ArgumentError, match="degree must be"):
        Homogeneous(1.0, 0.0, 0.5)
