"""‖∇f‖² and Δf of every architecture against dense autodiff."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems.networks.architectures import ACTIVATIONS, NAMES, problem

from steppe import losses, measures

# Every activation in one place, and one with each kind of second derivative everywhere.
CASES = [(n, a, True) for n in NAMES for a in ACTIVATIONS if n == NAMES[0] or a in ("relu", "softplus")]


@pytest.mark.parametrize(("name", "activation", "bias"), [*CASES, *((n, "relu", False) for n in NAMES)])
def test_against_autodiff_of_each_output(name, activation, bias):
    p = problem(name, ACTIVATIONS[activation], bias=bias)
    f = lambda w: p.predictions(w)  # noqa: E731
    J, H = jax.jit(lambda w: (jax.jacrev(f)(w), jax.jacfwd(jax.jacrev(f))(w)))(p.w0)
    norms, laplacians = jax.jit(p.predict.curvature)(p.unravel(p.w0), p.x)
    np.testing.assert_allclose(norms, (J**2).sum(axis=1), rtol=1e-12)
    # The terms of a Laplacian cancel: relative to the size of what is summed.
    diagonal = jnp.diagonal(H, axis1=1, axis2=2)
    np.testing.assert_allclose(laplacians, diagonal.sum(axis=1), atol=1e-12 * float(jnp.abs(diagonal).sum() + 1))


@pytest.mark.parametrize(
    ("name", "loss"), [*((n, losses.mse) for n in NAMES), ("sim-bn", losses.logistic(smoothing=0.2))]
)
def test_the_trace_it_gives_is_that_of_the_dense_hessian(name, loss):
    """Statistics couple the examples: the trace of the whole loss, not of one output."""
    p = problem(name, ACTIVATIONS["softplus"], loss=loss)
    np.testing.assert_allclose(measures.trace(p, p.w0).value, np.trace(jax.jit(jax.hessian(p.loss))(p.w0)), rtol=1e-11)
