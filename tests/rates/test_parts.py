"""The parts of a sweep: when it looks, what it smooths, when it gives up, which rates it takes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases.rate_nets import digits, factorisation
from hypothesis import given
from hypothesis import strategies as st

import steppe
from steppe import rates
from steppe.rates import Critical, Plan, doomed
from steppe.rates._descent import PRODUCT, Moments
from steppe.rates._sweep import ENOUGH


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(3, 30)), min_size=1, max_size=60), st.floats(0.05, 2.0))
def test_looks_are_paid_for(looks, share):
    """Whatever the changes and the prices, what was spent before a look is at most its share of the steps."""
    moments, step, spent = Moments(share), 0, 0
    for change, price in looks:
        assert PRODUCT * spent <= share * step + 1e-9
        spent += price
        moments = moments.changed(change)
        after = moments.after(step, products=spent)
        assert after > step
        step = after


def test_looks_are_nearer_where_sharpness_changes():
    slow = fast = Moments(100.0)
    step_slow = step_fast = 1000
    for _ in range(6):
        slow, fast = slow.changed(0.0), fast.changed(0.5)
        step_slow, step_fast = slow.after(step_slow, products=1), fast.after(step_fast, products=1)
    assert step_fast - 1000 < (step_slow - 1000) / 5


def test_the_smoothed_maximum_by_brute_force():
    rng = np.random.default_rng(0)
    steps = np.cumsum(rng.integers(1, 9, 30))
    values = rng.uniform(1, 2, 30)
    line = np.interp(np.linspace(steps[0], steps[-1], 20_001), steps, values)
    sums, width = np.append(0.0, np.cumsum(line)), 4_000
    means = (sums[width:] - sums[:-width]) / width
    found = rates.smoothed_maximum(steps, values, window=0.2)
    # The best stretch is sought at 90 places: a little below the best of all.
    assert means.max() * 0.98 <= found <= means.max() * 1.0001
    assert rates.smoothed_maximum(steps, np.ones(30)) == pytest.approx(1.0)
    assert rates.smoothed_maximum(steps, np.where(np.arange(30) == 7, np.nan, 1.0)) == pytest.approx(1.0)


def test_runs_given_up_would_not_have_reached_their_goal():
    """Rates from stable to far beyond, with and without giving up: the same ones reach, and those given up never do."""
    problem, _ = digits()
    taken = tuple(np.geomspace(0.2, 60.0, 6))
    judged = rates.sweep(problem, taken, goals=[0.25], critical=_flow(problem, 0.25), steps=1000, share=2.0)
    for descent in judged.descents:
        alone = steppe.run(
            problem, steppe.dynamics.GD(descent.lr), stop=steppe.until.loss(0.25) | steppe.until.steps(1000), record={}
        )
        assert (alone.outcome == "reached") == (descent.outcome == "reached")
        assert descent.steps <= alone.steps
    assert {d.outcome for d in judged.descents} > {"reached"}


def _flow(problem, goal):
    return steppe.critical_rate(problem, losses=[goal])


def test_a_dead_network_is_seen_to_stall():
    """All neurons off: only the last bias learns, and the loss stays at the variance of the targets."""
    x, y = np.linspace(-1, 1, 10)[:, None], np.linspace(-1, 1, 10)[:, None]
    params = {"W": np.full((3, 1), 0.1), "b": np.full(3, -5.0), "v": np.ones((1, 3)), "c": np.zeros(1)}

    def predict(p, x):
        return jax.nn.relu(x @ p["W"].T + p["b"][None]) @ p["v"].T + p["c"][None]

    p = steppe.Problem(predict, params, x, y + 1.0, steppe.losses.half_mse)
    goal = 0.01
    known = (Critical(goal, "reached", p.w0, 20.0, 1.0, 1.0, 1.0, 0),)
    found = rates.sweep(p, [0.3], goals=[goal], critical=known, steps=100_000)
    assert found.descents[0].outcome == "stalled"
    assert found.descents[0].steps < 1000


def test_doomed_waits_for_the_flow():
    """A plateau at the start is none to give up at."""
    steps, losses = [0, 100, 200, 400], [1.0, 1.0, 0.9999, 0.9999]
    assert doomed(steps, losses, goal=0.1, most=500, way=1.9) is None
    assert doomed(steps, losses, goal=0.1, most=500, way=2.0) == "stalled"
    assert doomed([0], [np.nan], goal=0.1, most=10, way=0.0) == "diverged"


def known_flow(s0, s_gf):
    return Critical(0.01, "reached", jnp.zeros(1), 1.0, s_gf, s0, s_gf, 0)


def carried_out(plan, limit, *, one_by_one):
    """The sweep of a plan where exactly the rates up to `limit` reach their goal."""
    outcomes, order = {}, []
    while todo := plan.next(outcomes):
        for lr in todo[:1] if one_by_one else todo:
            assert lr not in outcomes
            outcomes[lr] = "reached" if lr <= limit else "diverged"
            order.append(lr)
    return plan.kept(outcomes), outcomes


@pytest.mark.parametrize(
    ("s0", "s_gf", "limit"), [(5, 50, 0.5), (5, 50, 0.21), (5, 50, 0.05), (10, 11, 0.9), (5, 50, 9)]
)
def test_plans_end_and_do_not_depend_on_the_order(s0, s_gf, limit):
    plan = Plan(known_flow(s0, s_gf))
    kept, outcomes = carried_out(plan, limit, one_by_one=True)
    assert carried_out(plan, limit, one_by_one=False)[0] == kept
    fine = [lr for lr in plan.critical.fine_grid() if lr <= limit]
    assert set(fine) <= set(kept)
    assert all(lr > limit for lr in kept[-2:]) or len(kept) > 40
    beyond = [lr for lr in kept if 6 / s_gf * 1.001 < lr <= limit]
    if limit > 6 / s_gf * 1.5:
        assert len(beyond) >= ENOUGH
    assert all(lr > limit for lr in outcomes if lr not in kept)  # nothing is left out but beyond the divergence


def test_a_plan_without_the_coarse_grid():
    kept, _ = carried_out(Plan(known_flow(5, 50), coarse=False), 9.0, one_by_one=False)
    np.testing.assert_allclose(kept, np.arange(1, 13) / 100)


def test_predictor_norms_of_a_linear_network_are_those_of_its_product():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(4, 3)), rng.normal(size=(5, 4))
    x, y = rng.normal(size=(6, 3)), rng.normal(size=(6, 5))
    p = steppe.Problem(lambda w, x: x @ w["A"].T @ w["B"].T, {"A": A, "B": B}, x, y, steppe.losses.half_mse)
    found = rates.predictor_norms(p, p.w0)
    M = B @ A
    assert found["derivative"] == pytest.approx(np.linalg.norm(M))
    assert found["derivative_nuclear"] == pytest.approx(np.linalg.norm(M, "nuc"))
    assert found["output"] == pytest.approx(np.sqrt(np.mean(np.sum((x @ M.T) ** 2, axis=1))))
    # A rescaling of the layers changes the parameters, not the predictor.
    other = rates.predictor_norms(p, p.vector({"A": 3 * A, "B": B / 3}))
    assert all(other[name] == pytest.approx(value) for name, value in found.items())


def test_all_measures_of_figure_10_on_a_dense_hessian():
    p = factorisation()
    found = rates.sweep(p, [0.1], goals=[1e-10], all_sharpness=True).at(1e-10)
    w = np.asarray(rates.sweep(p, [0.1], goals=[1e-10]).descents[0].reached[0].w)
    H = jax.jit(jax.hessian(p.loss))(jnp.asarray(w))
    assert found["trace"][0] == pytest.approx(np.trace(H))
    # At an interpolator the Hessian is the Gauss-Newton matrix, for half the square the Fisher matrix, of rank one.
    assert found["fisher"][0] == pytest.approx(np.trace(H), rel=1e-4)
    assert found["fisher_trace"][0] == pytest.approx(np.trace(H), rel=1e-4)
    # ε₁, ε₂ of deviation ρ move the product w₁w₂ = 1 by ε₁ + ε₂ + ε₁ε₂: mean square 2ρ² + ρ⁴.
    assert found["adaptive_average"][0] == pytest.approx((2 * 0.1**2 + 0.1**4) / 2, rel=0.5)  # 128 draws: 4 errors
    worst = ((1 + 0.1 / np.sqrt(2)) ** 2 - 1) ** 2 / 2
    assert found["adaptive_worst"][0] == pytest.approx(worst, rel=1e-3)
