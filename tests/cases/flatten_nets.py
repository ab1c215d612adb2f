"""Networks to rescale: dense and convolutional, with and without biases, of degree 1 and more, with a skip."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import steppe
from steppe.activations import leaky_relu
from steppe.flattening import Neurons
from steppe.flattening._neurons import Arrays
from steppe.networks import MLP, OneHidden, TwoLayer
from steppe.problem import ravel

N, D, M = 5, 3, 4


def stack(params, x):
    """A list of (W, b), weights (in, out)."""
    for W, b in params[:-1]:
        x = jax.nn.relu(x @ W + b[None])
    W, b = params[-1]
    return x @ W + b[None]


def flat_list(params, x):
    """[W, b, v]: a plain list of arrays, one output."""
    W, b, v = params
    return jax.nn.leaky_relu(x @ W.T + b[None], 0.1) @ v


def cnn(params, x):
    """(n, 1, 4, 4) → three 3 × 3 filters → relu → flattened → linear."""
    h = jax.lax.conv_general_dilated(x, params["conv1"]["weight"], (1, 1), "VALID")
    h = jax.nn.relu(h + params["conv1"]["bias"][None, :, None, None])
    return h.reshape(len(x), -1) @ params["fc"]["weight"].T + params["fc"]["bias"][None]


def channels_last(params, x):
    """The same with channels last."""
    numbers = ("NHWC", "HWIO", "NHWC")
    h = jax.nn.relu(jax.lax.conv_general_dilated(x, params["conv1"], (1, 1), "VALID", dimension_numbers=numbers))
    return h.reshape(len(x), -1) @ params["fc2"]


def cubic(params, x):
    """relu³ and then relu: degrees 3 and 1."""
    h = jax.nn.relu(x @ params["W1"].T) ** 3
    return jax.nn.relu(h @ params["W2"].T) @ params["W3"]


def applied(layer, h):
    """A layer as Flax names it: `kernel` (in, out) and, with one, `bias`."""
    h = h @ layer["kernel"]
    return h + layer["bias"][None] if "bias" in layer else h


def classifier(params, x):
    """The alphabet puts the last layer first: classifier, fc1, fc2."""
    h = jax.nn.relu(x @ params["fc1"]["weight"].T + params["fc1"]["bias"][None])
    h = jax.nn.relu(h @ params["fc2"]["weight"].T + params["fc2"]["bias"][None])
    return h @ params["classifier"]["weight"].T + params["classifier"]["bias"][None]


def flax_names(params, x):
    """The alphabet reverses the layers: head, middle, scale, zero. The scale has one number for each hidden neuron."""
    h = jax.nn.relu(applied(params["zero"], x))
    h = params["scale"][None] * jax.nn.relu(applied(params["middle"], h))
    return applied(params["head"], h)


def equinox_cnn(model, x):
    """Modules of Equinox for one example: the bias of a convolution has the shape (out, 1, 1)."""

    def one(x):
        h = jax.nn.relu(model["features"](x))
        return model["classifier"](jnp.ravel(jax.nn.relu(model["last"](h))))

    return jax.vmap(one)(x)


def _equinox(seed):
    keys = jax.random.split(jax.random.key(seed), 3)
    parts = {
        "features": eqx.nn.Conv2d(1, 3, 3, key=keys[0]),
        "last": eqx.nn.Conv2d(3, 2, 1, key=keys[1]),
        "classifier": eqx.nn.Linear(8, 2, key=keys[2]),
    }
    return equinox_cnn, parts, (1, 4, 4)


def residual(params, x):
    h = x @ params["in"].T
    h = h + jax.nn.relu(h @ params["up"].T) @ params["down"].T
    return jax.nn.relu(h + jax.nn.relu(h @ params["square"].T)) @ params["out"]


SKIPPED = [
    Neurons({"in": 0, "down": 0, "square": 0}, {"up": 1, "square": 1, "out": 0}),
    Neurons({"up": 0}, {"down": 1}),
]


def drawn(shapes, seed):
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda s: rng.normal(size=s) / np.sqrt(s[-1]), shapes, is_leaf=lambda s: isinstance(s, tuple))


def _own(network, **kwargs):
    return lambda seed: (network, network.init(D, M, np.random.default_rng(seed), np.float64, **kwargs), (D,))


def _user(predict, shapes, inputs=(D,)):
    return lambda seed: (predict, drawn(shapes, seed), inputs)


NETS = {
    "two_layer": _own(TwoLayer()),
    "no_bias": _own(TwoLayer(bias=False, activation=leaky_relu(0.1))),
    "mlp": _own(MLP(depth=4)),
    "one_hidden": _own(OneHidden()),
    "outputs": _own(OneHidden(), outputs=2),
    "stack": _user(stack, [[(D, M), (M,)], [(M, M), (M,)], [(M, 2), (2,)]]),
    "flat_list": _user(flat_list, [(M, D), (M,), (M,)]),
    "cnn": _user(
        cnn,
        {"conv1": {"weight": (3, 1, 3, 3), "bias": (3,)}, "fc": {"weight": (2, 12), "bias": (2,)}},
        (1, 4, 4),
    ),
    "channels_last": _user(channels_last, {"conv1": (3, 3, 1, 3), "fc2": (12, 2)}, (4, 4, 1)),
    "cubic": _user(cubic, {"W1": (M, D), "W2": (M, M), "W3": (M,)}),
    "classifier": _user(
        classifier,
        {
            "fc1": {"weight": (M, D), "bias": (M,)},
            "fc2": {"weight": (M, M), "bias": (M,)},
            "classifier": {"weight": (M, M), "bias": (M,)},
        },
    ),
    "flax_names": _user(
        flax_names,
        {
            "zero": {"kernel": (D, M), "bias": (M,)},
            "middle": {"kernel": (M, 3)},
            "scale": (3,),
            "head": {"kernel": (3, 2)},
        },
    ),
    "equinox": _equinox,
    "residual": _user(residual, {"in": (M, D), "up": (2, M), "down": (M, 2), "square": (M, M), "out": (M,)}),
}
LAYERS = {"residual": SKIPPED}


def problem(name, seed=0, loss=steppe.losses.half_mse, dtype=np.float64):
    predict, params, inputs = NETS[name](seed)
    params = jax.tree.map(lambda a: np.asarray(a, dtype), params)
    x = np.random.default_rng(seed + 100).normal(size=(N, *inputs)).astype(dtype)
    w, unravel = ravel(params)
    f = np.asarray(jacobian(predict, unravel)(w, x)[1])
    return steppe.Problem(predict, params, x, np.sign(f + 0.1) if loss.name == "logistic" else f, loss)


@functools.cache
def jacobian(predict, unravel):
    """(predictions, Jacobian), one compiled function for each network."""

    def both(w, x):
        f = predict(unravel(w), x)
        return f.ravel(), f

    return jax.jit(jax.jacrev(both, has_aux=True))


def predictions(p, w):
    return np.asarray(jacobian(p.predict, p.unravel)(w, p.x)[1])


def dense(p, w, bend=None):
    """tr G and λ_max(G) of the dense Gauss-Newton matrix JᵀHJ by autodiff; H = I/n is that of half_mse."""
    J = np.asarray(jacobian(p.predict, p.unravel)(w, p.x)[0])
    m = np.linalg.eigvalsh(J.T @ J / len(p) if bend is None else J.T @ bend @ J)
    return {"trace": m.sum(), "sharpness": m[-1]}


def rescaled(p, layers, w, seed):
    """w with random factors from 1e-3 to 1e3 for every neuron."""
    exponents, widths = Arrays.of(p).exponents(layers)
    t = np.random.default_rng(seed).uniform(-np.log(1e3), np.log(1e3), sum(widths))
    return jnp.asarray(np.asarray(w) * exponents.factors(t))
