"""The form u ⊙ v: trace by autodiff, flattest interpolator by a certificate and by random search."""

import jax
import numpy as np
import pytest
from draws import SEED
from hypothesis import given, settings

from steppe.check import ArgumentError
from steppe.networks._diagonal import two_factors
from steppe.papers.conflicting_biases.theory import kkt as theory

HESSIAN = jax.jit(lambda p, w: jax.hessian(p.loss)(w))


def data(seed, n=3, d=5):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return rng, x, x @ rng.normal(size=d)


@settings(max_examples=10)
@given(SEED)
def test_trace_by_autodiff_anywhere(seed):
    rng, x, y = data(seed)
    u, v = rng.normal(size=(2, 5))
    p = two_factors(x, y, u=u, v=v)
    assert float(theory.trace(x, u, v)) == pytest.approx(float(np.trace(HESSIAN(p, p.w0))), rel=1e-11)


@settings(max_examples=25)
@given(SEED)
def test_no_interpolator_is_flatter(seed):
    rng, x, y = data(seed)
    best = theory.flattest(x, y)
    np.testing.assert_allclose(x @ best.beta, y, rtol=1e-8, atol=1e-9)
    assert best.lower == pytest.approx(best.trace, rel=1e-9)
    assert (np.abs(best.beta) > 1e-9).sum() <= len(y)  # a vertex: no more weights than examples
    root = np.sqrt(np.abs(best.beta))
    assert float(theory.trace(x, root, np.sign(best.beta) * root)) == pytest.approx(best.trace, rel=1e-9)
    null = np.linalg.svd(x)[2][len(y) :]
    other = best.beta + rng.normal(size=(20, len(null))) @ null
    scale = np.exp(rng.normal(size=other.shape))
    size = np.sqrt(np.abs(other))
    assert (theory.trace(x, size * scale, np.sign(other) * size / scale) >= best.trace * (1 - 1e-9)).all()


def test_what_no_weights_fit_is_refused():
    with pytest.raises(ArgumentError, match="y must be"):
        theory.flattest([[1.0, 0.0], [1.0, 0.0]], [1.0, 2.0])
    np.testing.assert_array_equal(theory.conserved([2.0, 1.0], [1.0, 1.0]), [3, 0])
