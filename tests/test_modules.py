"""Modules of Equinox and Flax as problems, against their own calls."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe import losses
from steppe.check import ArgumentError

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 3)), RNG.normal(size=(6, 2))


def mlp(key=0):
    return eqx.nn.MLP(3, 2, 4, 1, activation=jnp.tanh, key=jax.random.key(key))


def test_an_equinox_module():
    module = mlp()
    p = steppe.Problem.of(module, X, Y, losses.mse)
    np.testing.assert_allclose(p.loss(p.w0), np.mean((jax.vmap(module)(jnp.asarray(X)) - Y) ** 2), rtol=1e-13)
    assert p.w0.size == 3 * 4 + 4 + 4 * 2 + 2
    assert ".layers[0].weight" in steppe.measures.layer_norms(p)

    def written(params, x):
        (V, b), (W, c) = params
        return jnp.tanh(x @ V.T + b[None]) @ W.T + c[None]

    params = [(layer.weight, layer.bias) for layer in module.layers]
    same = steppe.Problem(written, params, X, Y, losses.mse)
    np.testing.assert_allclose(steppe.measures.trace(p).value, steppe.measures.trace(same).value, rtol=1e-11)


def test_modules_of_one_structure_share_compiled_code():
    one, other = (steppe.Problem.of(mlp(k), X, Y, losses.mse) for k in (0, 1))
    assert one.predict == other.predict
    assert hash(one.predict) == hash(other.predict)
    assert jax.tree.structure(one) == jax.tree.structure(other)


class Shifted(eqx.Module):
    """A real parameter, and integers that are none."""

    weight: jax.Array
    places: jax.Array

    def __call__(self, x):
        return x[self.places] @ self.weight


def test_arrays_that_are_no_parameters():
    one, same, other = (
        steppe.Problem.of(Shifted(jnp.ones((2, 2)), jnp.array(places)), X, Y, losses.mse)
        for places in ([0, 2], [0, 2], [0, 1])
    )
    assert one.w0.size == 4
    np.testing.assert_allclose(one.loss(one.w0), np.mean((X[:, [0, 2]] @ np.ones((2, 2)) - Y) ** 2), rtol=1e-13)
    assert one.predict == same.predict
    assert one.predict != other.predict


class Dropped(eqx.Module):
    layer: eqx.nn.Linear
    dropout: eqx.nn.Dropout

    def __call__(self, x):
        return self.dropout(self.layer(x))


def test_refusals():
    module = Dropped(eqx.nn.Linear(3, 2, key=jax.random.key(0)), eqx.nn.Dropout(0.5))
    with pytest.raises(ArgumentError, match=r"module must be without dropout; .* Pass equinox\.nn\.inference_mode"):
        steppe.Problem.of(module, X, Y, losses.mse)
    p = steppe.Problem.of(eqx.nn.inference_mode(module), X, Y, losses.mse)
    assert np.isfinite(p.loss(p.w0))
    with pytest.raises(ArgumentError, match=r"module must be given with its state, .* Pass \(module, state\)"):
        steppe.Problem.of(eqx.nn.BatchNorm(3, "batch", mode="batch"), X, Y, losses.mse)
    with pytest.raises(ArgumentError, match=r"module must be an Equinox module, .* steppe\.Problem\(predict, params"):
        steppe.Problem.of(lambda x: x, X, Y, losses.mse)


class Normalised(eqx.Module):
    norm: eqx.nn.BatchNorm
    layer: eqx.nn.Linear

    def __init__(self, axis="batch"):
        self.norm = eqx.nn.BatchNorm(3, axis, mode="batch", dtype=jnp.result_type(float))
        self.layer = eqx.nn.Linear(3, 2, key=jax.random.key(0))

    def __call__(self, x, state):
        x, state = self.norm(x, state)
        return self.layer(x), state


def test_a_state_of_equinox():
    module, state = eqx.nn.make_with_state(Normalised)()
    p = steppe.Problem.of((module, state), X, Y, losses.mse)
    normal = (X - X.mean(0)) / np.sqrt(X.var(0) + 1e-5)
    truth = np.mean((normal @ np.asarray(module.layer.weight).T + np.asarray(module.layer.bias) - Y) ** 2)
    for _ in range(2):  # the state is as before
        np.testing.assert_allclose(p.loss(p.w0), truth, rtol=1e-6)
    assert steppe.measures.sharpness(p).statistics == "full batch"
    jax.vmap(module, in_axes=(0, None), out_axes=(0, None), axis_name="batch")(jnp.asarray(X), state)


def test_linen():
    linen = pytest.importorskip("flax.linen")

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.BatchNorm(use_running_average=True)(linen.Dense(4)(x))
            return linen.Dense(2)(jnp.tanh(x))

    module = Net()
    variables = module.init(jax.random.key(0), jnp.asarray(X))
    p = steppe.Problem.of((module, variables), X, Y, losses.mse)
    # Running statistics are no parameters: 3 · 4 + 4, the scale and bias of the norm, 4 · 2 + 2.
    assert p.w0.size == 16 + 8 + 10
    truth = np.mean((module.apply(variables, jnp.asarray(X)) - Y) ** 2)
    np.testing.assert_allclose(p.loss(p.w0), truth, rtol=1e-5)
    with pytest.raises(ArgumentError, match=r"module must be a linen module with its variables"):
        steppe.Problem.of(module, X, Y, losses.mse)


def test_the_mode_of_linen():
    linen = pytest.importorskip("flax.linen")

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x, train):
            x = linen.BatchNorm(use_running_average=not train, use_scale=False, use_bias=False)(x)
            return linen.Dense(2)(linen.Dropout(0.5, deterministic=not train)(x) if self.is_noisy else x)

        is_noisy: bool = False

    module = Net()
    variables = module.init(jax.random.key(0), jnp.asarray(X), False)
    weight, bias = (np.asarray(variables["params"]["Dense_0"][name]) for name in ("kernel", "bias"))
    normal = (X - X.mean(0)) / np.sqrt(X.var(0) + 1e-5)
    for train, inputs in ((True, normal), (False, X / np.sqrt(1 + 1e-5))):
        p = steppe.Problem.of((module, variables), X, Y, losses.mse, train=train)
        np.testing.assert_allclose(p.loss(p.w0), np.mean((inputs @ weight + bias - Y) ** 2), rtol=1e-5)
    with pytest.raises(ArgumentError, match=r"module must be without dropout or noise; .* deterministic=True"):
        steppe.Problem.of((Net(is_noisy=True), variables), X, Y, losses.mse, train=True)


def test_nnx():
    nnx = pytest.importorskip("flax.nnx")
    module = nnx.Sequential(nnx.Linear(3, 4, rngs=nnx.Rngs(0)), jnp.tanh, nnx.Linear(4, 2, rngs=nnx.Rngs(1)))
    p = steppe.Problem.of(module, X, Y, losses.mse)
    assert p.w0.size == 16 + 10
    np.testing.assert_allclose(p.loss(p.w0), np.mean((module(jnp.asarray(X)) - Y) ** 2), rtol=1e-5)
    assert steppe.measures.sharpness(p).value > 0


def test_the_mode_of_nnx():
    nnx = pytest.importorskip("flax.nnx")

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.norm = nnx.BatchNorm(3, use_scale=False, use_bias=False, rngs=rngs)
            self.noise = nnx.Dropout(0.5, rngs=rngs)
            self.layer = nnx.Linear(3, 2, rngs=rngs)

        def __call__(self, x):
            return self.layer(self.noise(self.norm(x)))

    module = Net(nnx.Rngs(0))
    with pytest.raises(ArgumentError, match=r"module must be without dropout or noise; .* module\.eval\(\)"):
        steppe.Problem.of(module, X, Y, losses.mse)
    module.noise.deterministic = True
    p = steppe.Problem.of(module, X, Y, losses.mse)
    normal = (X - X.mean(0)) / np.sqrt(X.var(0) + 1e-5)
    truth = np.mean((normal @ np.asarray(module.layer.kernel[...]) + np.asarray(module.layer.bias[...]) - Y) ** 2)
    np.testing.assert_allclose(p.loss(p.w0), truth, rtol=1e-5)
    assert steppe.measures.sharpness(p).statistics == "full batch"
    np.testing.assert_array_equal(module.norm.mean[...], np.zeros(3))  # nothing was updated
