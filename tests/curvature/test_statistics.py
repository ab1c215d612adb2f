"""Batch statistics: three meanings, each against a network written out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles.dense_curvature import assert_close, dense, matrices, problem

import steppe
from steppe import Accuracy, activations, measures, networks
from steppe import curvature as operators
from steppe.check import ArgumentError
from steppe.curvature import Frozen, FullBatch, PerChunk, _traces
from steppe.curvature._statistics import Pieces


def batch_norm():
    """A hidden layer normalised by mean and variance, as jnp.mean and jnp.var compute them."""
    rng = np.random.default_rng(0)

    def predict(params, x):
        h = x @ params["W"].T
        h = (h - jnp.mean(h, axis=0, keepdims=True)) / jnp.sqrt(jnp.var(h, axis=0, keepdims=True) + 0.1)
        return jax.nn.softplus(params["scale"][None] * h) @ params["v"]

    params = {"W": rng.normal(size=(3, 2)), "scale": np.ones(3), "v": rng.normal(size=3)}
    return steppe.Problem(predict, params, rng.normal(size=(7, 2)), rng.normal(size=7), steppe.losses.mse)


def by_chunk(p, size):
    """Σ (share of the examples) × ∇²L of each chunk."""

    @jax.jit
    def hessian(x, y):
        return jax.hessian(lambda w: p.loss_function(p.predict(p.unravel(w), x), y))(p.w0)

    chunks = [(p.x[start : start + size], p.y[start : start + size]) for start in range(0, len(p), size)]
    return sum(len(y) / len(p) * np.asarray(hessian(x, y)) for x, y in chunks)


def test_full_batch_is_the_hessian_of_the_loss():
    p = problem("batch-statistics")
    assert_close(operators.hessian(p, p.w0, statistics=FullBatch()).dense(), matrices("batch-statistics").hessian)


def test_frozen_statistics_are_constants():
    p = batch_norm()
    params = p.unravel(np.asarray(p.w0))
    h = np.asarray(p.x) @ params["W"].T
    mean, deviation = h.mean(0, keepdims=True), np.sqrt(h.var(0, keepdims=True) + 0.1)

    def predict(params, x):
        h = (x @ params["W"].T - mean) / deviation
        return jax.nn.softplus(params["scale"][None] * h) @ params["v"]

    by_hand = dense(steppe.Problem(predict, params, p.x, p.y, p.loss_function))
    assert_close(operators.hessian(p, p.w0, statistics=Frozen()).dense(), by_hand.hessian)
    trace = measures.trace(p, p.w0, statistics=Frozen())
    np.testing.assert_allclose(trace.value, np.trace(by_hand.hessian), rtol=1e-13)
    np.testing.assert_allclose(trace.parts["gauss_newton"].value, np.trace(by_hand.gauss_newton), rtol=1e-13)
    assert trace.statistics == "frozen"


def test_statistics_of_each_chunk():
    p = problem("batch-statistics")
    by_hand = by_chunk(p, 3)  # 3, 3 and 2 examples
    assert_close(operators.hessian(p, p.w0, statistics=PerChunk(3)).dense(), by_hand)
    sharpness = measures.sharpness(p, p.w0, statistics=PerChunk(3))
    assert sharpness.statistics == "chunks of 3"
    assert sharpness.lower <= np.linalg.eigvalsh(by_hand)[-1] <= sharpness.upper
    np.testing.assert_allclose(measures.trace(p, p.w0, statistics=PerChunk(3)).value, np.trace(by_hand), rtol=1e-13)


def test_without_statistics_all_agree():
    p, expected = problem("least-squares"), matrices("least-squares")
    for statistics in (FullBatch(), Frozen(), PerChunk(5)):
        assert_close(operators.hessian(p, p.w0, statistics=statistics).dense(), expected.hessian)


def test_examples_that_attend_to_each_other_cannot_be_frozen():
    def predict(w, x):
        return jax.nn.softmax(x @ x.T) @ x @ w

    p = steppe.Problem(predict, np.ones(2), np.eye(3, 2), np.ones(3), steppe.losses.mse)
    with pytest.raises(ArgumentError, match=r"statistics must be FullBatch\(\) or PerChunk\(size\)"):
        operators.hessian(p, p.w0, statistics=Frozen())


def test_frozen_takes_a_network_of_any_number_of_examples():
    p = steppe.Problem(lambda w, x: x.reshape(3, 2) @ w, np.ones(2), np.ones((3, 2)), np.ones(3), steppe.losses.mse)
    with pytest.raises(ArgumentError, match="predict must be a function of any number of examples"):
        operators.hessian(p, p.w0, statistics=Frozen())


def test_a_chunk_has_an_example():
    with pytest.raises(ArgumentError, match="size must be a whole number ≥ 1; got 0"):
        PerChunk(0)


def zero_scale(n, outputs=(), last=0.0):
    """Normalised hidden units that do not reach the output at w, but whose derivatives do."""
    rng = np.random.default_rng(0)

    def predict(params, x):
        h = jnp.tanh(x @ params["W"])
        return (h - h.mean(0)[None]) / jnp.sqrt(h.var(0) + 1e-5)[None] @ params["g"]

    params = {"W": rng.normal(size=(3, 4)), "g": np.full((4, *outputs), last)}
    x, y = rng.normal(size=(n, 3)), rng.normal(size=(n, *outputs))
    return steppe.Problem(predict, params, x, y, steppe.losses.half_mse)


def test_a_layer_of_zeros_does_not_hide_the_statistics():
    """Two outputs: networks of one are in the other tests of traces."""
    p = zero_scale(8, outputs=(2,))
    expected = dense(p)
    np.testing.assert_allclose(measures.trace(p, p.w0).value, np.trace(expected.hessian), rtol=1e-12)
    np.testing.assert_allclose(measures.fisher_trace(p, p.w0).value, np.trace(expected.gauss_newton), rtol=1e-12)
    # In pieces of one example each, were they taken for alone.
    sharpness = measures.sharpness(p, p.w0, memory=500).value
    np.testing.assert_allclose(sharpness, np.linalg.eigvalsh(expected.hessian)[-1], rtol=1e-3)
    found = measures.trace(p, p.w0, statistics=PerChunk(4)).value
    np.testing.assert_allclose(found, np.trace(by_chunk(p, 4)), rtol=1e-12)


@pytest.mark.parametrize(("n", "products"), [(9, 16), (17, 32)])
def test_traces_where_a_row_takes_all_examples(n, products):
    """16 parameters and as many products: those of 9 outputs are by rows, those of 17 by products alone."""
    p = zero_scale(n, last=0.7)
    expected = dense(p)
    found = measures.trace(p, accuracy=Accuracy(0.05, max_matvecs=16))
    assert (found.matvecs, found.is_exact) == (products, True)
    np.testing.assert_allclose(found.value, np.trace(expected.hessian), rtol=1e-11)
    np.testing.assert_allclose(found.parts["gauss_newton"].value, np.trace(expected.gauss_newton), rtol=1e-11)
    if n == 9:  # by rows, as it is for more of them too
        fisher = measures.fisher_trace(p, accuracy=Accuracy(0.05, max_matvecs=100))
        np.testing.assert_allclose(fisher.value, np.trace(expected.gauss_newton), rtol=1e-11)


def test_rows_of_a_normalised_network_fit_into_memory():
    """A thousand of them: neither all rows at once nor a square of as many entries are held."""
    net = networks.CNN((4, 4), batch_norm=True)
    params = net.init((8, 8, 1), 10, np.random.default_rng(0))
    n = 100
    x, y = np.zeros((n, 8, 8, 1), np.float32), np.zeros((n, 10), np.float32)
    p = steppe.Problem(net, params, x, y, steppe.losses.half_mse)
    compiled = _traces._by_output.lower(p, p.w0, Pieces(n, n)).compile().compiled
    rows = 10 * p.w0.size * 4
    activations = n * 8 * 8 * (4 * 9) * 4  # the largest layer, its neighbourhoods laid out
    # A few arrays of the largest layer for each of the ten outputs of an example.
    assert compiled.memory_analysis().temp_size_in_bytes < rows + 10 * 10 * activations


# Traces of both in closed form, FullBatch; of the statistics held or of a chunk, which wrap any such network, of one.
@pytest.mark.parametrize(
    ("network", "traced"),
    [(networks.BatchNorm, (FullBatch(), Frozen(), PerChunk(4))), (networks.SimBN, (FullBatch(),))],
)
def test_networks_that_carry_their_inputs(network, traced):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(8, 3)), rng.normal(size=8)
    net = network(x, activation=activations.softplus)
    p = steppe.Problem(net, net.init(3, 4, rng, np.float64), x, y, steppe.losses.half_mse)
    centred = network is networks.BatchNorm

    def by_hand(params, x, source):
        a = [jax.nn.softplus(z @ q["W1"].T + q["b1"][None]) for q, z in ((params, x), source)]
        mean = a[1].mean(0, keepdims=True) if centred else 0.0
        spread = ((a[1] - mean) ** 2).mean(0, keepdims=True) + (net.eps if centred else 0.0)
        normalised = params["gamma"][None] * (a[0] - mean) / jnp.sqrt(spread)
        return (normalised + params.get("beta", jnp.zeros(4))[None]) @ params["W2"]

    @jax.jit
    def hessian(x, y, held):
        """Statistics of x itself, at w, or with held = 1 at the given parameters."""

        def loss(w):
            source = p.unravel(held * p.w0 + (1 - held) * w)
            return 0.5 * jnp.mean((by_hand(p.unravel(w), x, (source, x)) - y) ** 2)

        return jax.hessian(loss)(p.w0)

    expected = {
        FullBatch(): hessian(x, y, 0.0),
        Frozen(): hessian(x, y, 1.0),
        PerChunk(4): (np.asarray(hessian(x[:4], y[:4], 0.0)) + np.asarray(hessian(x[4:], y[4:], 0.0))) / 2,
    }
    for statistics, H in expected.items():
        assert_close(operators.hessian(p, p.w0, statistics=statistics).dense(), H)
    for statistics in traced:
        found = measures.trace(p, p.w0, statistics=statistics).value
        np.testing.assert_allclose(found, np.trace(expected[statistics]), rtol=1e-11)


def test_unknown_statistics_are_refused_on_every_path():
    net = networks.TwoLayer()
    p = steppe.Problem(
        net, net.init(2, 3, np.random.default_rng(0)), np.ones((4, 2), "f"), np.ones(4, "f"), steppe.losses.mse
    )
    for measure in (measures.trace, measures.sharpness, measures.fisher_trace):
        with pytest.raises(ArgumentError, match="statistics must be a treatment of batch statistics"):
            measure(p, p.w0, statistics="banana")


FROZEN = {
    "cnn": networks.CNN((6, 6), activation=activations.tanh, batch_norm=True),
    "resnet": networks.ResNet((2, 3), blocks=1, activation=activations.tanh),
}


def images(net, n, *, size=28):
    """More than one piece for the convolutions, so that their equations depend on n."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(n, size, size, 1)), rng.integers(0, 3, n)
    return steppe.Problem(net, net.init((size, size, 1), 3, rng, np.float64), x, y, steppe.losses.cross_entropy)


@pytest.mark.parametrize("name", FROZEN)
def test_networks_of_the_package_can_be_frozen(name):
    """The product with the Hessian whose statistics are computed once, outside of the function."""
    net, n = FROZEN[name], 17
    p = images(net, n, size=40 if name == "resnet" else 28)
    v = np.random.default_rng(1).normal(size=p.w0.size)
    constants = []

    def save(layer, h):
        axes = tuple(range(h.ndim - 1))
        constants.append((jnp.mean(h, axes, keepdims=True), jnp.var(h, axes, keepdims=True)))
        return use(layer, h, constants[-1])

    def use(layer, h, moments):
        g, b = (layer[k].reshape((1,) * (h.ndim - 1) + (-1,)) for k in ("gamma", "beta"))
        return g * (h - moments[0]) / jnp.sqrt(moments[1] + 1e-5) + b

    net.forward(p.unravel(p.w0), p.x, save)

    @jax.jit
    def product(w, v):
        def loss(w):
            left = iter(constants)
            f = net.forward(p.unravel(w), p.x, lambda layer, h: use(layer, h, next(left)))
            return p.loss_function(f, p.y)

        return jax.jvp(jax.grad(loss), (w,), (v,))[1]

    expected = np.asarray(product(p.w0, v))
    found = operators.hessian(p, p.w0, statistics=Frozen())(v)
    np.testing.assert_allclose(found, expected, atol=1e-10 * np.abs(expected).max())


def test_a_trained_network_is_frozen_at_the_statistics_of_its_training_inputs():
    net = FROZEN["cnn"]
    p = images(net, 4, size=4)
    test = steppe.Problem(net.after_training(p.x), p.unravel(p.w0), p.x[:2], p.y[:2], p.loss_function)
    constant = test.predict.frozen()

    def loss(w, source):
        return p.loss_function(test.predict.predict(p.unravel(w), test.x, p.unravel(source)), test.y)

    v = np.random.default_rng(1).normal(size=p.w0.size)
    expected = np.asarray(jax.jit(lambda w, v: jax.jvp(jax.grad(lambda u: loss(u, p.w0)), (w,), (v,))[1])(p.w0, v))
    assert constant == test.predict.frozen()  # so that two measures share compiled code
    found = operators.hessian(test, p.w0, statistics=Frozen())(v)
    np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())


def test_frozen_follows_a_network_that_works_in_batches():
    """Its equations differ for one example more, but not for twice as many."""

    def predict(params, x):
        h = jax.lax.map(lambda row: params["W"] @ row, x, batch_size=2)
        return jnp.tanh(h / jnp.sqrt(jnp.mean(h**2, axis=0, keepdims=True))) @ params["v"]

    rng = np.random.default_rng(0)
    params = {"W": rng.normal(size=(4, 3)), "v": rng.normal(size=4)}
    p = steppe.Problem(predict, params, rng.normal(size=(6, 3)), rng.normal(size=6), steppe.losses.mse)
    mean = np.mean((np.asarray(p.x) @ params["W"].T) ** 2, axis=0)

    def by_hand(params, x):
        return jnp.tanh(x @ params["W"].T / jnp.sqrt(mean)[None]) @ params["v"]

    expected = dense(steppe.Problem(by_hand, params, p.x, p.y, p.loss_function)).hessian
    assert_close(operators.hessian(p, p.w0, statistics=Frozen()).dense(), expected)
