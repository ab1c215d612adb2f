"""Networks that were written for their own data: they hold some of it themselves, or its number of examples."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe import curvature as operators
from steppe import measures
from steppe.check import ArgumentError

N = 70  # more than coupling looks at
X = np.random.default_rng(0).standard_normal((N, 3))

NETWORKS = {
    "a constant": lambda w, x: w[0] * w[1] * jnp.ones(N),
    "features": lambda w, x: jnp.tanh(X @ w),
    "weights": lambda w, x: jnp.tanh((x * X) @ w),
    "a number of rows": lambda w, x: jnp.tanh(x.reshape(N, 3) @ w),
    "relu": lambda w, x: jax.nn.relu((x * X) @ w),
}


@functools.cache
def own(name):
    x = None if name in ("a constant", "features") else X
    return steppe.Problem(NETWORKS[name], np.array([1.0, 0.5, -0.3]), x, np.ones(N), steppe.losses.mse)


@functools.cache
def dense(name):
    """The Hessian of the loss and the Jacobian of the predictions, by autodiff."""
    p = own(name)
    return jax.tree.map(np.asarray, jax.jit(lambda w: (jax.hessian(p.loss)(w), jax.jacrev(p.predictions)(w)))(p.w0))


@pytest.mark.parametrize("memory", [2.0**30, 100.0])
@pytest.mark.parametrize("name", NETWORKS)
def test_every_example_counts_once(name, memory):
    p, (H, J) = own(name), dense(name)
    found = measures.trace(p, p.w0, memory=memory)
    np.testing.assert_allclose(found.value, np.trace(H), rtol=1e-12)
    np.testing.assert_allclose(found.parts["gauss_newton"].value, 2 / N * (J**2).sum(), rtol=1e-12)
    np.testing.assert_allclose(measures.fisher_trace(p, p.w0, memory=memory).value, 2 / N * (J**2).sum(), rtol=1e-12)
    largest = measures.sharpness(p, p.w0, memory=memory)
    assert largest.lower <= np.linalg.eigvalsh(H)[-1] <= largest.upper
    np.testing.assert_allclose(operators.hessian(p, p.w0, memory=memory).dense(), H, rtol=1e-12, atol=1e-12)


def test_its_kinks_are_found():
    p = own("relu")
    w = jnp.asarray(np.linalg.svd((X * X)[5:7])[2][-1])  # two pre-activations of zero
    found = measures.kinks(p, w)
    assert found.layers[0].examples.tolist() == [5, 6]
    with pytest.warns(measures.KinkWarning):
        measures.sharpness(p, w)


def test_chunks_of_it_are_refused():
    p = own("weights")
    with pytest.raises(ArgumentError, match=r"predict must be a function of any number of examples; got 'no row each"):
        measures.sharpness(p, p.w0, statistics=measures.PerChunk(7))
