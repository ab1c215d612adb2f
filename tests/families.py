"""Small problems of many kinds, for laws that hold for all of them."""

import jax.numpy as jnp
import numpy as np

import steppe
from steppe.data import xor
from steppe.networks import TwoLayer


def two_layer(*, bias=True, d=6, n=9, width=7, loss=steppe.losses.mse, dtype=np.float64, key=0):
    rng = np.random.default_rng(key)
    network, data = TwoLayer(bias=bias), xor(d, n, key=rng)
    return steppe.Problem(network, network.init(d, width, rng, dtype), data.x, data.y, loss)


def least_squares(*, n=12, d=5, loss=steppe.losses.half_mse, key=0):
    rng = np.random.default_rng(key)
    x, y = rng.normal(size=(n, d)), rng.normal(size=n)
    return steppe.Problem(lambda w, x: x @ w, rng.normal(size=d), x, y, loss)


def tanh_net(*, n=10, d=4, width=5, outputs=3, loss=steppe.losses.half_mse, key=0):
    """Vector outputs and a nested pytree."""
    rng = np.random.default_rng(key)
    params = {
        "hidden": (rng.normal(size=(d, width)), rng.normal(size=width)),
        "out": rng.normal(size=(width, outputs)) / width,
    }

    def predict(params, x):
        W, b = params["hidden"]
        return jnp.tanh(x @ W + b[None]) @ params["out"]

    x = rng.normal(size=(n, d))
    classes = loss.name == "cross_entropy"
    y = rng.integers(0, outputs, n) if classes else rng.choice([-1.0, 1.0], size=(n, outputs))
    return steppe.Problem(predict, params, x, y, loss)


def batch_statistics(*, key=0):
    """A network whose examples see each other."""
    rng = np.random.default_rng(key)

    def predict(params, x):
        h = x @ params["W"].T
        h = h / jnp.sqrt(jnp.mean(h**2, axis=0, keepdims=True) + 0.1)
        return jnp.tanh(h) @ params["v"]

    params = {"W": rng.normal(size=(4, 3)), "v": rng.normal(size=4)}
    return steppe.Problem(predict, params, rng.normal(size=(8, 3)), rng.normal(size=8), steppe.losses.mse)


FAMILY = {
    "two-layer": two_layer,
    "two-layer-no-bias": lambda: two_layer(bias=False),
    "two-layer-logistic": lambda: two_layer(loss=steppe.losses.logistic(smoothing=0.2)),
    "least-squares": least_squares,
    "tanh-half-mse": tanh_net,
    "tanh-mse": lambda: tanh_net(loss=steppe.losses.mse),
    "tanh-cross-entropy": lambda: tanh_net(loss=steppe.losses.cross_entropy),
    "tanh-logistic": lambda: tanh_net(loss=steppe.losses.logistic(smoothing=0.1)),
    "batch-statistics": batch_statistics,
}
