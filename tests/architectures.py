"""One small random problem for each architecture, for laws that hold for all of them."""

import numpy as np

import steppe
from steppe.activations import leaky_relu, relu, softplus, tanh
from steppe.networks import MLP, BatchNorm, LayerNorm, SimBN, SimLN, TwoLayer

ACTIVATIONS = {"relu": relu, "leaky": leaky_relu(0.2), "softplus": softplus, "tanh": tanh}


def architectures(x, activation=relu, *, bias=True):
    """Every network of the package, those with statistics built on x."""
    options = {"bias": bias, "activation": activation}
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


NAMES = list(architectures(np.zeros((1, 1))))


def problem(name, activation=relu, *, bias=True, d=4, n=7, width=5, loss=steppe.losses.mse, dtype=np.float64, key=0):
    """The network on ±1 labels; no parameter is special: γ and β are random too."""
    rng = np.random.default_rng(key)
    x, y = rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], n)
    network = architectures(x, activation, bias=bias)[name]
    params = network.init(d, width, rng, dtype)
    params |= {k: rng.normal(size=width).astype(dtype) for k in ("gamma", "beta") if k in params}
    return steppe.Problem(network, params, x, y, loss)
