"""The networks of wen2023 in a few obvious lines, for numpy and jax, and the trace of a dense Hessian by autodiff."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial

EPS = np.finfo(float).eps


def relu(h):
    # With slope 0 at 0, as the paper's 1[h > 0].
    return h * (h > 0)


def hidden(params, x):
    h = x @ params["W1"].T
    return relu(h + params["b1"][None, :] if "b1" in params else h)


def _mlp(params, x):
    """Any depth, with or without the first bias."""
    a = hidden(params, x)
    depth = sum(name.startswith("W") for name in params)
    for layer in range(2, depth):
        a = relu(a @ params[f"W{layer}"].T)
    return a @ params[f"W{depth}"]


def _sim_ln(eps, params, x):
    a = hidden(params, x)
    square = (a**2).sum(axis=1)
    long = square > eps**2
    # Both branches take the root of a number away from 0: otherwise autodiff would pass on a NaN.
    length = long * (long * square + (1 - long)) ** 0.5 + (1 - long) * eps
    return (a @ params["W2"]) / length


def _sim_bn(x_train, params, x):
    scale = (hidden(params, x_train) ** 2).mean(axis=0) ** 0.5
    return (hidden(params, x) / scale[None, :]) @ (params["gamma"] * params["W2"])


# Pytrees: another ε or training set needs no new compilation.
mlp = Partial(_mlp)


def sim_ln(eps):
    return Partial(_sim_ln, eps)


def sim_bn(x_train):
    return Partial(_sim_bn, x_train)


def square(f, y):
    return (f - y) ** 2


def predict(net, params, x):
    return net(params, np.asarray(x, dtype=float))


def trace(net, params, x, y, loss=square):
    """tr ∇²L of the dense Hessian of L = mean loss."""
    if "gamma" not in params:
        params, x, y, weight = padded(params, x, y)
    else:
        weight = np.full(len(y), 1 / len(y))
    with jax.enable_x64(True):
        return float(_trace(loss, *jax.tree.map(jnp.asarray, (net, x, y, weight, params))))


@jax.jit(static_argnums=0)
def _trace(loss, net, x, y, weight, params):
    w, unravel = ravel_pytree(params)
    return jnp.trace(jax.hessian(lambda w: jnp.sum(weight * loss(net(unravel(w), x), y)))(w))


def gauss_newton(net, params, x):
    """(2/n) Σ ‖∇f(xᵢ)‖², which is the trace at an interpolator (Lemma 4.1)."""
    with jax.enable_x64(True):
        return float(_gauss_newton(*jax.tree.map(jnp.asarray, (net, x, params))))


@jax.jit
def _gauss_newton(net, x, params):
    w, unravel = ravel_pytree(params)
    return 2 * jnp.mean(jnp.sum(jax.jacrev(lambda w: net(unravel(w), x))(w) ** 2, axis=1))


def padded(params, x, y):
    """Sizes rounded up, so that one compiled function serves many: silent neurons, inputs of 0, examples of weight 0.

    None of them has a gradient, so the trace does not change (`test_generalising` compares with and without).
    """
    n, d, m = len(y), x.shape[1], len(params["W1"])
    rows, columns, width = (size * (1 + (k - 1) // size) for k, size in ((n, 16), (d, 8), (m, 16)))
    last = f"W{sum(name.startswith('W') for name in params)}"
    shapes = {"W1": (width, columns), "b1": (width,), last: (width,)}
    params = {
        name: np.pad(W, [(0, to - by) for by, to in zip(W.shape, shapes.get(name, (width, width)), strict=True)])
        for name, W in params.items()
    }
    weight = np.pad(np.full(n, 1 / n), (0, rows - n))
    return params, np.pad(x, ((0, rows - n), (0, columns - d))), np.pad(y, (0, rows - n)), weight


def rounding(params, x):
    """Relative rounding error of a first-layer activation: ε_machine (|W₁||x| + |b₁|) over its height, made safe."""
    W1, b1 = params["W1"], params.get("b1", np.zeros(len(params["W1"])))
    size = np.abs(W1) @ np.abs(x).T + np.abs(b1)[:, None]
    height = np.maximum(W1 @ x.T + b1[:, None], 0).max(axis=1, keepdims=True)
    return 16 * EPS * float(np.max(size / np.where(height > 0, height, np.inf), initial=1.0))


def cube(d):
    return 2.0 * ((np.arange(2**d)[:, None] >> np.arange(d)) & 1) - 1.0


def zero_one(y, f):
    """Pr(y f ≤ 0): an output of 0 is an error."""
    return float(np.mean(y * f <= 0))
