"""The diagonal of G by products of squares equals that of the gradients of single examples."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases.flatten_nets import drawn, problem

import steppe
from steppe.check import ArgumentError
from steppe.flattening._jacobian import diagonal, root
from steppe.flattening._squares import entries


def conv(x, kernel, **changes):
    settings = {"window_strides": (1, 1), "padding": "SAME"} | changes
    return jax.lax.conv_general_dilated(x, kernel, **settings)


def scanned(params, x):
    return jax.lax.scan(lambda h, W: (jax.nn.relu(h @ W.T), None), x, params["W"])[0]


# Name: network, shapes of its parameters and of an input. In the first group every array enters in a known way.
KNOWN = {
    "strides": (
        lambda p, x: conv(x, p["k"], window_strides=(2, 1)).reshape(len(x), -1),
        {"k": (2, 3, 3, 2)},
        (3, 5, 4),
    ),
    "dilated": (lambda p, x: conv(x, p["k"], rhs_dilation=(2, 1))[:, :, 1, 1], {"k": (2, 3, 2, 3)}, (3, 5, 4)),
    "transposed": (
        lambda p, x: conv(x, p["k"], padding=((1, 2), (-1, 1)), lhs_dilation=(2, 1))[:, 0, :, 0],
        {"k": (2, 3, 2, 2)},
        (3, 3, 4),
    ),
    "groups": (
        lambda p, x: conv(x, p["k"], feature_group_count=2).reshape(len(x), -1)[:, :7],
        {"k": (4, 1, 3, 3)},
        (2, 3, 3),
    ),
    "one dimension": (
        lambda p, x: conv(x, p["k"], window_strides=(1,)).reshape(len(x), -1) @ p["v"],
        {"k": (2, 3, 3), "v": (8, 2)},
        (3, 4),
    ),
    "positions": (
        lambda p, x: jnp.mean(jax.nn.relu(x @ p["W"] + p["b"][None, None]), axis=1) @ p["v"],
        {"W": (3, 4), "b": (4,), "v": (4, 2)},
        (5, 3),
    ),
    "gain": (lambda p, x: p["g"][None] * (x @ p["W"].T) - p["b"][None], {"g": (4,), "W": (4, 3), "b": (4,)}, (3,)),
    "called": (
        lambda p, x: jax.jit(lambda W, x: jnp.einsum("io,ni->no", W, x))(p["W"], x) + p["b"].reshape(1, 4),
        {"W": (3, 4), "b": (2, 2)},
        (3,),
    ),
    "checkpointed": (
        lambda p, x: jax.checkpoint(lambda x: jax.nn.relu(x @ p["W"]) @ p["V"])(x),
        {"W": (3, 4), "V": (4, 2)},
        (3,),
    ),
}
UNKNOWN = {
    "tied": (lambda p, x: jax.nn.relu(x @ p["W"]) @ p["W"].T, {"W": (3, 4)}, (3,)),
    "normed": (lambda p, x: x @ (p["W"] / jnp.linalg.norm(p["W"])), {"W": (3, 4)}, (3,)),
    "multiplied first": (lambda p, x: x @ (p["W"] @ p["V"]), {"W": (3, 4), "V": (4, 2)}, (3,)),
    "scanned": (scanned, {"W": (2, 3, 3)}, (3,)),
    "unused": (lambda p, x: x @ p["W"], {"W": (3, 4), "V": (2,)}, (3,)),
}
# These run in pieces of two examples and a smaller last one: a kernel, products with a bias at several positions, and
# no known way. The code that adds the pieces is the same for all networks; the others run in one piece, which compiles
# in half the time.
PIECES = ("strides", "positions", "tied")


def made(predict, shapes, inputs, loss=steppe.losses.half_mse):
    params, x = drawn(shapes, 0), np.random.default_rng(1).normal(size=(5, *inputs))
    f = jax.eval_shape(predict, params, x)
    # G does not depend on the targets.
    y = np.arange(5) % f.shape[1] if loss.name == "cross_entropy" else np.zeros(f.shape)
    return steppe.Problem(predict, params, x, y, loss)


def same(p, monkeypatch, *, known, pieces=5):
    """The route of large problems, in pieces of `pieces` examples and a smaller last one, against the dense root."""
    outputs = jax.eval_shape(p.predictions, p.w0).size // len(p)
    held = entries(p, p.w0, outputs)
    assert (held is not None) == known
    expected = np.sum(root(p, p.w0) ** 2, axis=0)
    held = held or outputs * p.w0.size
    monkeypatch.setattr("steppe.flattening._jacobian._SMALL", 0)
    monkeypatch.setattr("steppe.flattening._jacobian._HELD", pieces * held)
    # Sums of at most some hundred squares, in another order.
    np.testing.assert_allclose(diagonal(p, p.w0), expected, rtol=1e-12, atol=1e-14 * expected.max())


@pytest.mark.parametrize("name", [*KNOWN, *UNKNOWN])
def test_every_way_to_use_an_array(name, monkeypatch):
    p = made(*(KNOWN | UNKNOWN)[name])
    same(p, monkeypatch, known=name in KNOWN, pieces=2 if name in PIECES else 5)


@pytest.mark.parametrize("name", ["cnn", "channels_last", "residual"])
def test_networks(name, monkeypatch):
    same(problem(name), monkeypatch, known=True)


def test_a_loss_that_mixes_the_outputs(monkeypatch):
    same(made(*KNOWN["positions"], steppe.losses.cross_entropy), monkeypatch, known=True)


def test_a_module(monkeypatch):
    model = eqx.filter_jit(eqx.nn.MLP)(3, 2, 4, 2, key=jax.random.key(0))
    params, static = eqx.partition(model, eqx.is_array)
    x = np.random.default_rng(1).normal(size=(5, 3))
    predict = lambda params, x: jax.vmap(eqx.combine(params, static))(x)  # noqa: E731
    p = steppe.Problem(
        predict, jax.tree.map(lambda a: np.asarray(a, float), params), x, np.ones((5, 2)), steppe.losses.mse
    )
    same(p, monkeypatch, known=True)


def test_examples_that_see_each_other_need_the_whole_root(monkeypatch):
    def centred(params, x):
        h = x @ params["W"].T
        return jax.nn.relu(h - jnp.mean(h, axis=0, keepdims=True)) @ params["v"]

    p = made(centred, {"W": (4, 3), "v": (4, 2)}, (3,))
    same(p, monkeypatch, known=True)
    monkeypatch.setattr("steppe.flattening._jacobian.KEPT", 1)
    with pytest.raises(ArgumentError, match="Flatten on fewer examples"):
        diagonal(p, p.w0)
