"""Batch statistics: three meanings, each against a network written out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from families import batch_statistics

import steppe
from steppe import measures
from steppe.check import ArgumentError
from steppe.measures import Frozen, FullBatch, PerChunk, exact_trace, operators
from steppe.measures.operators.pieces import Pieces
from steppe.problems import networks

from .dense import assert_close, dense, matrices, problem


def batch_norm():
    """A hidden layer normalised by mean and variance, as jnp.mean and jnp.var compute them."""
    rng = np.random.default_rng(0)

    def predict(params, x):
        h = x @ params["W"].T
        h = (h - jnp.mean(h, axis=0, keepdims=True)) / jnp.sqrt(jnp.var(h, axis=0, keepdims=True) + 0.1)
        return jax.nn.softplus(params["scale"][None] * h) @ params["v"]

    params = {"W": rng.normal(size=(3, 2)), "scale": np.ones(3), "v": rng.normal(size=3)}
    return steppe.Problem(predict, params, rng.normal(size=(7, 2)), rng.normal(size=7), steppe.losses.mse)


def test_full_batch_is_the_hessian_of_the_loss():
    p = problem("batch-statistics")
    assert_close(operators.hessian(p, p.w0, statistics=FullBatch()).dense(), matrices("batch-statistics").hessian)


def test_frozen_statistics_are_constants():
    p = batch_norm()
    params = p.unravel(p.w0)
    h = p.x @ params["W"].T
    mean, deviation = h.mean(0, keepdims=True), jnp.sqrt(h.var(0, keepdims=True) + 0.1)

    def predict(params, x):
        h = (x @ params["W"].T - mean) / deviation
        return jax.nn.softplus(params["scale"][None] * h) @ params["v"]

    by_hand = dense(steppe.Problem(predict, params, p.x, p.y, p.criterion))
    assert_close(operators.hessian(p, p.w0, statistics=Frozen()).dense(), by_hand.hessian)
    trace = measures.trace(p, p.w0, statistics=Frozen())
    np.testing.assert_allclose(trace.value, np.trace(by_hand.hessian), rtol=1e-13)
    np.testing.assert_allclose(trace.parts["gauss_newton"].value, np.trace(by_hand.gauss_newton), rtol=1e-13)
    assert trace.statistics == "frozen"


def test_statistics_of_each_chunk():
    p = batch_statistics()
    # 3, 3 and 2 examples.
    whole = [p.on(p.x[start : start + 3], p.y[start : start + 3]) for start in (0, 3, 6)]
    by_hand = np.asarray(sum(len(q) / len(p) * jax.jit(jax.hessian(q.loss))(p.w0) for q in whole))
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


def zero_scale(n=9, outputs=(), last=0.0):
    """Normalised hidden units that do not reach the output at w, but whose derivatives do."""
    rng = np.random.default_rng(0)

    def predict(params, x):
        h = jnp.tanh(x @ params["W"])
        return (h - h.mean(0)[None]) / jnp.sqrt(h.var(0) + 1e-5)[None] @ params["g"]

    params = {"W": rng.normal(size=(3, 4)), "g": np.full((4, *outputs), last)}
    x, y = rng.normal(size=(n, 3)), rng.normal(size=(n, *outputs))
    return steppe.Problem(predict, params, x, y, steppe.losses.half_mse)


@pytest.mark.parametrize("outputs", [(), (2,)])
def test_a_layer_of_zeros_does_not_hide_the_statistics(outputs):
    p = zero_scale(outputs=outputs)
    expected = dense(p)
    np.testing.assert_allclose(measures.trace(p, p.w0).value, np.trace(expected.hessian), rtol=1e-12)
    np.testing.assert_allclose(measures.fisher_trace(p, p.w0).value, np.trace(expected.gauss_newton), rtol=1e-12)
    # In pieces of one example each, were they taken for alone.
    sharpness = measures.sharpness(p, p.w0, memory=500).value
    np.testing.assert_allclose(sharpness, np.linalg.eigvalsh(expected.hessian)[-1], rtol=1e-3)
    whole = [p.on(p.x[start : start + 4], p.y[start : start + 4]) for start in (0, 4, 8)]
    by_hand = sum(len(q) / len(p) * np.trace(jax.jit(jax.hessian(q.loss))(p.w0)) for q in whole)
    np.testing.assert_allclose(measures.trace(p, p.w0, statistics=PerChunk(4)).value, by_hand, rtol=1e-12)


@pytest.mark.parametrize(("n", "products"), [(9, 16), (17, 32)])
def test_traces_where_a_row_takes_all_examples(n, products):
    """16 parameters and as many products: those of 9 outputs are by rows, those of 17 by products alone."""
    p = zero_scale(n, last=0.7)
    expected = dense(p)
    found = measures.trace(p, p.w0, max_matvecs=16)
    assert (found.matvecs, found.is_exact) == (products, True)
    np.testing.assert_allclose(found.value, np.trace(expected.hessian), rtol=1e-11)
    np.testing.assert_allclose(found.parts["gauss_newton"].value, np.trace(expected.gauss_newton), rtol=1e-11)
    fisher = measures.fisher_trace(p, p.w0, max_matvecs=100)
    np.testing.assert_allclose(fisher.value, np.trace(expected.gauss_newton), rtol=1e-11)


def test_rows_of_a_normalised_network_fit_into_memory():
    """A thousand of them: neither all rows at once nor a square of as many entries are held."""
    net = networks.CNN((4, 4), batch_norm=True)
    params = net.init((8, 8, 1), 10, np.random.default_rng(0))
    n = 100
    x, y = np.zeros((n, 8, 8, 1), np.float32), np.zeros((n, 10), np.float32)
    p = steppe.Problem(net, params, x, y, steppe.losses.half_mse)
    compiled = exact_trace._by_output.lower(p, p.w0, Pieces(n, n)).compile().compiled
    rows = 10 * p.w0.size * 4
    activations = n * 8 * 8 * (4 * 9) * 4  # the largest layer, its neighbourhoods laid out
    # A few arrays of the largest layer for each of the ten outputs of an example.
    assert compiled.memory_analysis().temp_size_in_bytes < rows + 10 * 10 * activations


@pytest.mark.parametrize("network", [networks.BatchNorm, networks.SimBN])
def test_networks_that_carry_their_inputs(network):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(9, 3)), rng.normal(size=9)
    net = network(x, activation=networks.softplus)
    p = steppe.Problem(net, net.init(3, 4, rng, np.float64), x, y, steppe.losses.half_mse)
    params, centred = p.unravel(p.w0), network is networks.BatchNorm
    beta = params.get("beta", jnp.zeros(4))

    def by_hand(params, x, source):
        a = [jax.nn.softplus(z @ q["W1"].T + q["b1"][None]) for q, z in ((params, x), source)]
        mean = a[1].mean(0, keepdims=True) if centred else 0.0
        spread = ((a[1] - mean) ** 2).mean(0, keepdims=True) + (net.eps if centred else 0.0)
        normalised = params["gamma"][None] * (a[0] - mean) / jnp.sqrt(spread)
        return (normalised + params.get("beta", beta)[None]) @ params["W2"]

    def hessian(rows, source):
        def loss(w):
            q = p.unravel(w)
            return 0.5 * jnp.mean((by_hand(q, x[rows], source(q)) - y[rows]) ** 2)

        return np.asarray(jax.jit(jax.hessian(loss))(p.w0))

    everything = slice(None)
    chunks = [slice(start, min(9, start + 4)) for start in (0, 4, 8)]
    expected = {
        FullBatch(): hessian(everything, lambda q: (q, x)),
        Frozen(): hessian(everything, lambda q: (params, x)),
        PerChunk(4): sum(
            (rows.stop - rows.start) / 9 * hessian(rows, lambda q, rows=rows: (q, x[rows])) for rows in chunks
        ),
    }
    for statistics, H in expected.items():
        assert_close(operators.hessian(p, p.w0, statistics=statistics).dense(), H)
        np.testing.assert_allclose(measures.trace(p, p.w0, statistics=statistics).value, np.trace(H), rtol=1e-11)


def test_unknown_statistics_are_refused_on_every_path():
    net = networks.TwoLayer()
    p = steppe.Problem(
        net, net.init(2, 3, np.random.default_rng(0)), np.ones((4, 2), "f"), np.ones(4, "f"), steppe.losses.mse
    )
    for measure in (measures.trace, measures.sharpness, measures.fisher_trace):
        with pytest.raises(ArgumentError, match="statistics must be a treatment of batch statistics"):
            measure(p, p.w0, statistics="banana")
