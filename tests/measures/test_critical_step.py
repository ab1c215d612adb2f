"""The critical sharpness: closed forms, every network against a fine scan and λ_max, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases.problems import NETWORKS, least_squares, tanh_net

import steppe
from steppe import measures
from steppe.check import ArgumentError
from steppe.dynamics import GD


def test_on_a_quadratic_loss_it_is_the_curvature_along_the_gradient():
    """And λ_max where the gradient is the leading eigenvector."""
    p = least_squares()
    found = measures.critical_sharpness(p, rtol=1e-4)
    assert found.lower <= measures.edge_ratio(p).value <= found.upper
    assert found.upper / found.lower <= 1 + 1.01e-4
    H, best = np.asarray(p.x.T @ p.x) / len(p.y), np.linalg.lstsq(np.asarray(p.x), np.asarray(p.y), rcond=None)[0]
    values, vectors = np.linalg.eigh(H)
    along = measures.critical_sharpness(p, jnp.asarray(best + vectors[:, -1]), rtol=1e-4)
    assert along.lower <= values[-1] * (1 + 1e-12)
    assert values[-1] <= along.upper * (1 + 1e-12)


@pytest.mark.parametrize("name", ["fcn", "vit"])
def test_no_smaller_step_raises_the_loss_of_a_network(name):
    """A thousand steps up to η* lower the loss, the next one does not."""
    p = NETWORKS[next(n for n in NETWORKS if name in n.lower())](dtype=np.float64)
    found = measures.critical_sharpness(p, rtol=1e-3)
    g, loss = jax.grad(p.loss)(p.w0), float(p.loss(p.w0))
    steps = np.linspace(0, 2 / found.upper, 200)[1:]
    after = np.asarray(jax.lax.map(lambda s: p.loss(p.w0 - s * g), jnp.asarray(steps)))
    assert (after <= loss).all()
    assert float(p.loss(p.w0 - 2 / found.lower * g)) > loss


def test_at_the_edge_of_stability_it_is_close_to_the_sharpness():
    """There descent oscillates along the leading eigenvector. Control: at the start it is far below λ_max."""
    p = tanh_net()
    start = measures.sharpness(p).value
    assert measures.critical_sharpness(p).value < 0.9 * start
    lr = 2.2 / start
    w = steppe.run(p, GD(lr), stop=steppe.until.steps(12)).w
    assert measures.critical_sharpness(p, w).value == pytest.approx(2 / lr, rel=0.5)


@pytest.mark.parametrize("options", [{"rtol": 0.0}, {"w": np.full(3, np.nan)}])
def test_bad_input(options):
    with pytest.raises(ArgumentError):
        measures.critical_sharpness(least_squares(), **options)
    flat = steppe.Problem(lambda w, x: 0.0 * w * x, jnp.ones(1), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)
    with pytest.raises(ArgumentError, match="stationary"):
        measures.critical_sharpness(flat)
