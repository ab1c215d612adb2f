"""Batch statistics: three meanings, each against a network written out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from families import batch_statistics

import steppe
from steppe import measures
from steppe.check import ArgumentError
from steppe.measures import Frozen, FullBatch, PerChunk, operators

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
