"""A flow with kinks runs again, finer, until two runs agree: the error it states is the one it has."""

import jax.numpy as jnp
import numpy as np
import pytest
from cases.memory import Memory

import steppe
from steppe import losses, networks, until, when
from steppe.check import ArgumentError
from steppe.dynamics import AB2, Flow
from steppe.dynamics._flow import refine


def relu_net(width=6, n=20, seed=0):
    rng = np.random.default_rng(seed)
    x, net = rng.standard_normal((n, 3)), networks.FCN((width, width))
    return steppe.Problem(net, net.init((3,), 1, rng, np.float64), x, np.sin(2 * x[:, :1]), losses.half_mse)


NET = relu_net()
SMOOTH = steppe.Problem(lambda w, x: jnp.tanh(x @ w), np.ones(3), NET.x, NET.y[:, 0], losses.half_mse)


def off(w, to, start):
    w, to, start = (np.asarray(v, float) for v in (w, to, start))
    return np.linalg.norm(w - to) / np.linalg.norm(to - start)


def test_the_error_of_a_finer_run():
    """ρ of the distance, but never below LEAST of it, and never above it."""
    assert refine.own_error(0.06, 200, 100) == 0.03
    assert refine.own_error(0.06, 1000, 10) == pytest.approx(0.06 * refine.LEAST)
    assert refine.own_error(0.06, 10, 100) == 0.06
    assert refine.own_error(0.0, 200, 100, 0.06) == pytest.approx(0.03 * refine.LEAST)  # as close as this by chance


def test_which_run_comes_next():
    following = lambda fineness, error, **how: refine.finer(fineness, 1e-2, error, least=1e-6, **how)  # noqa: E731
    assert following(3e-2, None, plain=False) == pytest.approx(1e-2)
    assert following(0.75, None, plain=True) == 0.75 / 8
    assert following(0.75, 0.009, plain=True) is None
    assert following(0.75, 0.5, plain=True) == 0.75 / refine.MOST
    assert following(1e-2, 0.035, plain=False) == pytest.approx(1e-2 * 1.4e-2 / 0.035)
    assert following(refine.FINEST_PLAIN, 0.5, plain=True) is None


def test_ab2_is_of_second_order_where_the_loss_is_smooth():
    """½ Σ λᵢwᵢ², in closed form: half the step, a quarter of the error."""
    spectrum = np.array([1.0, 3.0])
    roots = jnp.sqrt(jnp.asarray(spectrum))
    p = steppe.Problem(lambda w, x: x * w[None], jnp.ones(2), roots[None], jnp.zeros((1, 2)), losses.half_mse)
    exact = np.exp(-spectrum * 1.0)
    errors = [
        np.linalg.norm(np.asarray(steppe.run(p, Flow(method=AB2(a)), stop=until.time(1.0)).w) - exact)
        for a in (0.1, 0.05, 0.025)
    ]
    np.testing.assert_allclose(np.array(errors[:-1]) / errors[1:], 4.0, rtol=0.25)  # a step more or less to t = 1


def test_smooth_networks_run_once_and_kinked_ones_until_they_agree():
    once = steppe.run(SMOOTH, Flow(1e-2), stop=until.time(2.0))
    assert (once.error, once.coarser) == (None, None)
    twice = steppe.run(SMOOTH, Flow(1e-2, verify=True), stop=until.time(2.0))
    assert twice.error <= refine.ALLOWED * 1e-2
    np.testing.assert_array_equal(twice.w, once.w)  # the last run is the same, after a coarser one
    assert twice.gradients == once.gradients + twice.coarser.gradients

    truth = steppe.run(NET, Flow(method=AB2(1 / 100)), stop=until.time(20.0)).w
    found = steppe.run(NET, Flow(1e-2), stop=until.time(20.0), when=when.times([1.0, 5.0]))
    assert found.error <= refine.ALLOWED * 1e-2
    assert off(found.w, truth, NET.w0) <= 3e-2
    assert found.records["time"].tolist() == [0.0, 1.0, 5.0, 20.0]  # of the last run alone
    assert found.coarser.gradients < found.gradients
    # Control: one run of the same tolerance may not keep its word, and does not know it.
    alone = steppe.run(NET, Flow(1e-2, verify=False), stop=until.time(20.0))
    assert alone.error is None
    assert off(found.w, truth, NET.w0) < off(alone.w, truth, NET.w0)


def test_resumes_within_a_finer_run_to_the_bit():
    options = {"stop": until.time(5.0), "when": when.times(np.linspace(0.5, 4.5, 9))}
    counting = Memory()
    whole = steppe.run(NET, Flow(1e-2), checkpoint=counting, **options)
    memory = Memory(number=counting.calls - 3)
    steppe.run(NET, Flow(1e-2), checkpoint=memory, **options)
    assert any(name.startswith("coarser/") for name in memory.saved)
    resumed = steppe.run(NET, Flow(1e-2), checkpoint=Memory(saved=memory.saved), **options)
    np.testing.assert_array_equal(whole.w, resumed.w)
    assert (whole.steps, whole.gradients, whole.error) == (resumed.steps, resumed.gradients, resumed.error)
    np.testing.assert_array_equal(whole.coarser.records["loss"], resumed.coarser.records["loss"])


def test_a_finer_run_that_is_cut_short_leaves_the_coarser_one():
    """As many steps as the coarse run took: the finer one does not come to its end."""
    flow, end = Flow(1e-2, verify=True), until.time(2.0)
    whole = steppe.run(SMOOTH, flow, stop=end)
    cut = steppe.run(SMOOTH, flow, stop=end | until.steps(whole.coarser.steps))
    np.testing.assert_array_equal(cut.w, whole.coarser.w)
    assert (cut.error, cut.records["time"][-1], cut.steps) == (None, 2.0, whole.coarser.steps)
    assert cut.gradients > whole.coarser.gradients


@pytest.mark.parametrize("options", [{"verify": "yes"}, {"verify": True, "method": AB2(0.5)}, {"method": AB2}])
def test_bad_input(options):
    with pytest.raises(ArgumentError):
        Flow(1e-2, **options)
    with pytest.raises(ArgumentError):
        AB2(0.0)


def test_a_smooth_loss_is_not_ruled_by_kinks():
    """At its minimum rounding looks like kinks: the flow once went on with steps of another method, and past it."""
    w0, one = jnp.array([0.5, 0.5]), jnp.ones(1)
    problem = steppe.Problem(lambda w, x: w[0] * w[1] * x, w0, one, one, steppe.losses.half_mse)
    found = steppe.run(problem, Flow(3e-3, verify=True), stop=until.loss(1e-8))
    assert found.outcome == "reached"
    assert 0 <= found.error <= 6e-3  # 2 rtol
    np.testing.assert_allclose(found.w, 1.0, atol=2e-4)
