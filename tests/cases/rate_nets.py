"""Small problems for sweeps: one that is known in closed form, and a little network on real digits."""

import functools

import jax.numpy as jnp
import numpy as np

import steppe


def factorisation(start=(2.0, 0.1)):
    """½(w₁w₂ − 1)²: sharpness at a minimum is w₁² + w₂²."""
    return steppe.Problem(_product, jnp.array(start), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)


def _product(w, x):
    return w[0] * w[1] * x


@functools.cache
def digits():
    """40 digits, one hidden layer of 8 tanh neurons; and 200 others to test on."""
    from sklearn.datasets import load_digits

    loaded = load_digits()
    x = loaded.data / 16 - 0.3
    y = np.eye(10)[loaded.target]
    rng = np.random.default_rng(43)
    params = [_layer(rng, 64, 8), _layer(rng, 8, 10)]
    problem = steppe.Problem(_network, params, x[:40], y[:40], steppe.losses.half_mse)
    return problem, problem.on(x[1000:1200], y[1000:1200])


def _layer(rng, a, b):
    return {"W": rng.uniform(-1, 1, (a, b)) / a**0.5, "b": rng.uniform(-1, 1, b) / a**0.5}


def _network(layers, x):
    hidden, out = layers
    return jnp.tanh(x @ hidden["W"] + hidden["b"][None]) @ out["W"] + out["b"][None]
