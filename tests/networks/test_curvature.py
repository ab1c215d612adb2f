"""‖∇f‖² and Δf of every architecture against dense autodiff."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases.problems import ACTIVATIONS, CLOSED_FORM, closed_form

from steppe import losses, measures


def along_the_axes(f, w):
    """(p, outputs) twice: the first and second derivatives of f along every axis."""
    return jax.vmap(lambda e: jax.jvp(lambda w: jax.jvp(f, (w,), (e,))[1], (w,), (e,)))(jnp.eye(w.size))


def agree(p):
    """Compares ‖∇f‖² and Δf of each example with autodiff; returns tr ∇²L of the whole loss."""

    def outputs_and_loss(w):
        f = p.predictions(w)
        return jnp.append(f, p.loss_function(f, p.y))

    @jax.jit
    def both(w):
        return along_the_axes(outputs_and_loss, w), p.predict.curvature(p.unravel(w), p.x)

    (first, second), (norms, laplacians) = jax.tree.map(np.asarray, both(p.w0))
    np.testing.assert_allclose(norms, (first[:, :-1] ** 2).sum(axis=0), rtol=1e-12)
    # The terms of a Laplacian cancel: relative to the size of what is summed.
    diagonal = second[:, :-1]
    np.testing.assert_allclose(laplacians, diagonal.sum(axis=0), atol=1e-12 * (np.abs(diagonal).sum() + 1))
    return second[:, -1].sum()


# Softplus has a second derivative everywhere; one of the losses is not quadratic.
@pytest.mark.parametrize("name", CLOSED_FORM)
def test_smooth_and_the_trace_of_the_loss(name):
    """Statistics couple the examples: the trace is that of the whole loss."""
    loss = losses.logistic(smoothing=0.2) if name == "sim-bn" else losses.mse
    p = closed_form(name, ACTIVATIONS["softplus"], loss=loss)
    np.testing.assert_allclose(measures.trace(p, p.w0).value, agree(p), rtol=1e-11)


# Every class of networks with a kink and without bias, and every activation once: all networks use an activation only
# through its value, slope and curvature. Depths differ in the recursion of second derivatives, which is tested above.
CASES = [(n, "relu", False) for n in CLOSED_FORM if n not in ("mlp-2", "mlp-4")]


@pytest.mark.parametrize(
    ("name", "activation", "bias"), [*CASES, ("two-layer", "leaky", True), ("two-layer", "tanh", True)]
)
def test_other_activations_and_no_bias(name, activation, bias):
    agree(closed_form(name, ACTIVATIONS[activation], bias=bias))
