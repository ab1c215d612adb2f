"""The problems that all tests share: small problems of many kinds, and at least one of every public network class.

`FAMILY` is for laws that hold for any problem, `CLOSED_FORM` for networks that know their own curvature, and `NETWORKS`
for laws of networks. A new class in `steppe.networks` needs a case here: a test fails without one.
"""

import inspect
from functools import partial

import jax.numpy as jnp
import numpy as np

import steppe
from steppe import data, losses, networks
from steppe.activations import leaky_relu, relu, softplus, tanh
from steppe.data import xor
from steppe.networks import (
    CNN,
    FCN,
    MLP,
    BatchNorm,
    LayerNorm,
    OneHidden,
    ResNet,
    SimBN,
    SimLN,
    Transformer,
    TwoLayer,
    ViT,
    build,
    kernel,
)

ACTIVATIONS = {"relu": relu, "leaky": leaky_relu(0.2), "softplus": softplus, "tanh": tanh}


def two_layer(*, bias=True, d=6, n=9, width=7, loss=losses.mse, dtype=np.float64, key=0):
    rng = np.random.default_rng(key)
    network, split = TwoLayer(bias=bias), xor(d, n, key=rng)
    return steppe.Problem(network, network.init(d, width, rng, dtype), split.x, split.y, loss)


def least_squares(*, n=12, d=5, loss=losses.half_mse, key=0):
    rng = np.random.default_rng(key)
    x, y = rng.normal(size=(n, d)), rng.normal(size=n)
    return steppe.Problem(lambda w, x: x @ w, rng.normal(size=d), x, y, loss)


def tanh_net(*, n=10, d=4, width=5, outputs=3, loss=losses.half_mse, key=0):
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
    """The prediction for one example depends on the others."""
    rng = np.random.default_rng(key)

    def predict(params, x):
        h = x @ params["W"].T
        h = h / jnp.sqrt(jnp.mean(h**2, axis=0, keepdims=True) + 0.1)
        return jnp.tanh(h) @ params["v"]

    params = {"W": rng.normal(size=(4, 3)), "v": rng.normal(size=4)}
    return steppe.Problem(predict, params, rng.normal(size=(8, 3)), rng.normal(size=8), losses.mse)


FAMILY = {
    "two-layer": two_layer,
    "two-layer-no-bias": partial(two_layer, bias=False),
    "two-layer-logistic": partial(two_layer, loss=losses.logistic(smoothing=0.2)),
    "least-squares": least_squares,
    "tanh-half-mse": tanh_net,
    "tanh-mse": partial(tanh_net, loss=losses.mse),
    "tanh-cross-entropy": partial(tanh_net, loss=losses.cross_entropy),
    "tanh-logistic": partial(tanh_net, loss=losses.logistic(smoothing=0.1)),
    "batch-statistics": batch_statistics,
}


def _closed_form_networks(x, **options):
    """Networks with one output and closed-form curvature; x is for those that carry their training inputs."""
    return {
        "two-layer": TwoLayer(**options),
        "mlp-2": MLP(2, **options),
        "mlp-3": MLP(3, **options),
        "mlp-4": MLP(4, **options),
        "sim-ln": SimLN(0.5, **options),
        "sim-bn": SimBN(x, **options),
        "layer-norm": LayerNorm(**options, eps=0.1),
        "batch-norm": BatchNorm(x, **options, eps=0.1),
    }


CLOSED_FORM = list(_closed_form_networks(np.zeros((1, 1))))


def closed_form(name, activation=relu, *, bias=True, d=4, n=7, width=5, loss=losses.mse, dtype=np.float64, key=0):
    """A network of `CLOSED_FORM` on ±1 labels; all parameters are random, γ and β too."""
    rng = np.random.default_rng(key)
    x, y = rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], n)
    network = _closed_form_networks(x, bias=bias, activation=activation)[name]
    params = network.init(d, width, rng, dtype)
    params |= {k: rng.normal(size=width).astype(dtype) for k in ("gamma", "beta") if k in params}
    return steppe.Problem(network, params, x, y, loss)


def one_hidden(*, outputs=2, dtype=np.float64, key=1):
    rng = np.random.default_rng(key)
    params = OneHidden().init(2, 3, rng, dtype, outputs=outputs)
    return steppe.Problem(OneHidden(), params, rng.normal(size=(4, 2)), np.zeros((4, outputs)), losses.half_mse)


def noise_images(key=0, n=5):
    """n training and three test images of 4 × 4 pixels and two classes."""
    rng = np.random.default_rng(key)
    classes = rng.integers(0, 2, n + 3)
    x = rng.normal(size=(n + 3, 4, 4, 1))
    return data.Dataset("noise", x[:n], classes[:n], x[n:], classes[n:], classes=2)


# Smooth activations: differences must not step across a kink.
ARCHITECTURES = {
    "fcn": (FCN((3, 4), activation=tanh), losses.half_mse),
    "fcn-kernel": (FCN((3, 4), activation=tanh, parameterisation=kernel), losses.cross_entropy),
    "cnn-bn": (CNN((2, 3), activation=tanh, batch_norm=True), losses.cross_entropy),
    "resnet": (ResNet((2, 3), blocks=1, activation=tanh), losses.cross_entropy),
    "vit": (ViT(patch=2, dim=4, layers=1, heads=2, hidden=4, activation=tanh), losses.cross_entropy),
    "transformer": (Transformer(dim=4, hidden=4, encoder_layers=1, decoder_layers=1, heads=2), losses.cross_entropy),
}


def architecture(name, *, dtype=np.float64):
    """The training and test problems of `ARCHITECTURES`: sequences for the transformer, else images of noise."""
    network, loss = ARCHITECTURES[name]
    dataset = data.reversal(4, test=2, length=3, symbols=3) if name == "transformer" else noise_images()
    return build(network, dataset, loss, dtype=dtype)


NETWORKS = {
    **{name: partial(closed_form, name) for name in CLOSED_FORM},
    "one-hidden": one_hidden,
    **{name: lambda name=name, **options: architecture(name, **options).train for name in ARCHITECTURES},
}


def network_classes():
    """The public classes of networks, found by reflection: concrete ones that draw their own parameters."""
    public = (getattr(networks, name) for name in dir(networks))
    return {c for c in public if inspect.isclass(c) and hasattr(c, "init") and not inspect.isabstract(c)}
