"""The critical rate where it is known in closed form, and what it says about gradient descent."""

from itertools import pairwise

import jax.numpy as jnp
import numpy as np
import pytest
from cases.problems import tanh_net

import steppe
from steppe import rates, until
from steppe.check import ArgumentError
from steppe.dynamics import GD
from steppe.dynamics._flow import Flow
from steppe.rates import Critical
from steppe.rates._critical import critical_arrays, restored_critical


def scalar_factorisation(start):
    """½(w₁w₂ − 1)²; the flow keeps w₁² − w₂², and ∇²L = (w₂, w₁)ᵀ(w₂, w₁) + (w₁w₂ − 1)[[0, 1], [1, 0]]."""
    return steppe.Problem(_product, jnp.array(start), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)


def _product(w, x):
    return w[0] * w[1] * x


def test_scalar_factorisation_in_closed_form():
    p = scalar_factorisation([2.0, 0.1])
    goals = [0.1, 1e-3, 1e-9]
    found = steppe.critical_rate(p, losses=goals[::-1], flow=Flow(1e-5))
    assert [c.loss for c in found] == goals
    for c in found:
        residual = -np.sqrt(2 * c.loss)
        kept, product = 2.0**2 - 0.1**2, 1 + residual
        square = np.sqrt(kept**2 + 4 * product**2)  # w₁² + w₂² from w₁² − w₂² and w₁w₂
        u, v = np.sqrt((square + kept) / 2), np.sqrt((square - kept) / 2)
        H = np.outer([v, u], [v, u]) + residual * np.array([[0, 1], [1, 0]])
        truth = np.linalg.eigvalsh(H)[-1]
        assert c.outcome == "reached"
        assert c.sharpness == pytest.approx(truth, rel=1e-4)  # the flow's rtol, times λ's slope in w of 2/‖w‖ and more
    assert all(a.largest_sharpness <= b.largest_sharpness for a, b in pairwise(found))
    assert all(a.time < b.time and a.gradients < b.gradients for a, b in pairwise(found))
    assert found[0].initial_sharpness == found[-1].initial_sharpness


def test_intervals_hold_the_closed_form_and_are_kept():
    """From (2, 0.1) the end is the sharpest point, with w₁² + w₂² = √(kept² + 4). One run alone has no interval."""
    p = scalar_factorisation([2.0, 0.1])
    found = steppe.critical_rate(p, losses=[1e-3, 1e-9])
    truth = np.sqrt((2.0**2 - 0.1**2) ** 2 + 4)
    s_gf, eta_c = found[-1].s_gf, found[-1].eta_c
    assert s_gf.lower <= truth <= s_gf.upper
    assert s_gf.upper - s_gf.lower <= 0.02 * truth
    assert (eta_c.lower, eta_c.upper) == (2 / s_gf.upper, 2 / s_gf.lower)
    assert (eta_c.value, eta_c.confidence) == (found[-1].rate, 0.95)
    kept = restored_critical(critical_arrays(found))
    assert [c.s_gf for c in kept] == [c.s_gf for c in found]
    once = steppe.critical_rate(p, losses=[1e-9], flow=Flow(1e-2, verify=False))[0].s_gf
    assert not once.converged
    assert once.upper == np.inf


def test_a_prediction_of_s_gf():
    """A power of the loss is continued; one that falls leaves the largest so far. Control: a goal already met."""
    loss = np.geomspace(1.0, 0.2, 15)
    rising = rates.predicted(loss, 3 * loss**-0.8, 0.02)
    assert rising.value == pytest.approx(3 * 0.02**-0.8)
    assert rising.lower == pytest.approx(3 * 0.2**-0.8)
    assert rising.lower < rising.value < rising.upper
    assert rates.predicted(loss, 3 * loss**0.8, 0.02).value == 3.0
    assert rates.predicted(loss, 3 * loss**-0.8, 0.5).value == pytest.approx(3 * 0.2**-0.8)
    for wrong in ((loss, loss[:3], 0.1), (loss[:2], loss[:2], 0.1), (loss, loss, 0.0), ([], [], 0.1)):
        with pytest.raises(ArgumentError):
            rates.predicted(*wrong)


def test_above_the_critical_rate_gradient_descent_does_not_follow_the_flow():
    """From close to the axis the sharpest point is the end: far below η_c descent converges to sharpness s_GF, above
    it cannot stay there, since 2/η is smaller."""
    p = scalar_factorisation([2.0, 0.1])
    (c,) = steppe.critical_rate(p, losses=[1e-10], flow=Flow(1e-5))
    ends = [steppe.run(p, GD(k * c.rate), stop=until.loss(1e-10) | until.steps(20_000)).w for k in (0.1, 1.2)]
    below, above = (float(jnp.sum(w**2)) for w in ends)
    assert below == pytest.approx(c.largest_sharpness, rel=0.05)  # of first order in the rate
    assert above < 2 / (1.2 * c.rate) * 1.001


def test_a_loss_that_the_flow_cannot_reach():
    """Two contradicting examples: the loss stays at ½."""
    x, y = np.ones((2, 1)), np.array([1.0, -1.0])
    p = steppe.Problem(_linear, np.array([1.0]), x, y, steppe.losses.half_mse)
    found = steppe.critical_rate(p, losses=[0.75, 0.1, 0.01])
    assert [c.outcome for c in found] == ["reached", "stalled"]
    assert found[-1].largest_sharpness == pytest.approx(1.0, rel=1e-3)


def _linear(w, x):
    return x @ w


def test_grids_of_the_paper():
    c = Critical(0.01, "reached", jnp.zeros(1), 1.0, 40.0, 5.0, 50.0, 0)
    fine = c.fine_grid()
    assert len(fine) == 12
    np.testing.assert_allclose([fine[0], fine[3], fine[-1]], [1 / 100, c.rate, 6 / 50])
    coarse = c.coarse_grid(beyond=2)
    step = (2 / 5 - 6 / 50) / 8
    np.testing.assert_allclose(np.diff(coarse), step)
    assert 0 < coarse[0] <= step
    assert np.isclose(coarse, 6 / 50).any()
    assert coarse[-1] == pytest.approx(2 / 5 + 2 * step)
    np.testing.assert_allclose(np.diff(c.coarse_grid(refine=4)), step / 4)
    flat = Critical(0.01, "reached", jnp.zeros(1), 1.0, 5.0, 5.0, 5.0, 0).coarse_grid()
    np.testing.assert_allclose(np.diff(flat), 1 / 10)
    # 2/s₀ hardly above 6/s_GF: the paper's distance down to a quarter of the fine one, and not a thousandth of it.
    for above, step in ((1.0, 1 / 8 / 50), (0.999, 1 / 2 / 50), (0.01, 1 / 2 / 50)):
        c = Critical(0.01, "reached", jnp.zeros(1), 1.0, 40.0, 2 / ((6 + above * (1 + 1e-9)) / 50), 50.0, 0)
        np.testing.assert_allclose(np.diff(c.coarse_grid()), step, rtol=1e-6)


def test_no_rate_is_critical_without_positive_curvature():
    """½(w₁w₂w₃ − 1)² at 0, where all derivatives of order one and two are 0; ½(cos w + 5)² near its maximum."""
    flat = steppe.Problem(_triple, np.zeros(3), np.ones(1), np.ones(1), steppe.losses.half_mse)
    (stalled,) = steppe.critical_rate(flat, losses=[0.1])
    assert (stalled.outcome, stalled.largest_sharpness, stalled.rate) == ("stalled", 0.0, np.inf)
    hill = steppe.Problem(_cosine, np.array([0.3]), np.ones(1), -5 * np.ones(1), steppe.losses.half_mse)
    above, down = steppe.critical_rate(hill, losses=[17.0, 10.0])
    assert above.largest_sharpness < 0
    assert above.rate == np.inf
    assert down.rate == pytest.approx(2 / down.largest_sharpness)
    assert len(down.coarse_grid()) > 0  # s₀ < 0
    with pytest.raises(ArgumentError, match="choose the rates yourself"):
        above.fine_grid()
    with pytest.raises(ArgumentError, match="choose the rates yourself"):
        rates.sweep(hill, goals=[17.0])


def _triple(w, x):
    return w[0] * w[1] * w[2] * x


def _cosine(w, x):
    return jnp.cos(w[0]) * x


@pytest.mark.parametrize(
    "options",
    [
        {"losses": []},
        {"losses": ["small"]},
        {"losses": 0.1},
        {"losses": "0.1"},
        {"w": np.zeros(3)},
        {"flow": GD(0.1)},
        {"stop": 60},
    ],
)
def test_bad_input(options):
    with pytest.raises(ArgumentError):
        steppe.critical_rate(tanh_net(), **options)
