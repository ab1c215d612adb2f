"""The tracker: few products, the right value, and the right eigenvector when two of them cross."""

import jax.numpy as jnp
import numpy as np
import pytest
from oracles.dense_curvature import problem

import steppe
from steppe import measures
from steppe.check import ArgumentError

P = 60


def crossing():
    """At w = (t, 0, …, 0) the eigenvalues are S_k(t)²: the first falls from 9, the second rises from 4, the rest is
    below 1; they cross at t = 1/2."""
    base = np.concatenate([[3.0, 2.0], np.linspace(0.9, 0.1, P - 3)])
    slope = np.concatenate([[-1.0, 1.0], np.zeros(P - 3)])

    def predict(w, x):
        return x * (base + slope * w[0])[None] * w[1:][None]

    one = np.ones((1, P - 1))
    return steppe.Problem(predict, np.zeros(P), one, 0 * one, steppe.losses.half_mse)


def at(t):
    return np.eye(P)[0] * t


@pytest.mark.parametrize("insist", [True, False])
def test_a_planted_crossing_is_noticed(insist):
    p, track = crossing(), measures.Tracker(insist=insist)
    takeovers = []
    for step, t in enumerate(np.linspace(0, 1, 26)):
        e = track(p, at(t))
        truth = max(3.0 - t, 2.0 + t) ** 2
        assert e.value == pytest.approx(truth, rel=1e-3)
        assert e.lower <= truth * (1 + 1e-12)
        assert truth <= e.upper * (1 + 1e-12)
        takeovers += [t] * track.takeover
        assert e.matvecs <= 6 or step == 0
    assert len(takeovers) == 1
    assert 0.5 <= takeovers[0] <= 0.6


def test_certified_at_the_first_call_and_then_as_often_as_asked():
    p, track = crossing(), measures.Tracker(certify_every=3)
    found = [track(p, at(t)) for t in (0.0, 0.1, 0.2, 0.3)]
    assert [found[k].converged for k in (0, 3)] == [True, True]
    assert found[3].matvecs > max(found[1].matvecs, found[2].matvecs)


def test_a_jump_is_followed_when_it_insists():
    """From one end to the other: all kept vectors but one are of no use."""
    p, track = crossing(), measures.Tracker()
    track(p, at(0.0))
    assert track(p, at(1.0)).value == pytest.approx(9.0, rel=1e-3)
    assert track.settled


def test_another_problem_starts_afresh():
    track, p = measures.Tracker(), problem("least-squares")
    track(crossing(), at(0.0))
    expected = measures.sharpness(p, p.w0).value
    assert track(p, p.w0).value == pytest.approx(expected, rel=1e-9)


def test_as_a_record_of_a_run():
    p = problem("tanh-half-mse")
    run = steppe.run(
        p,
        steppe.dynamics.GD(0.05),
        stop=steppe.until.steps(40),
        when=steppe.when.every(steps=4),
        record={"tracked": measures.Tracker(), "sharpness": measures.sharpness},
    )
    tracked, sharpness = run.records["tracked"], run.records["sharpness"]
    assert len(tracked) == 11
    np.testing.assert_allclose(tracked, sharpness, rtol=1e-3)
    assert (run.records["tracked.lower"] <= sharpness * (1 + 1e-12)).all()
    assert (run.records["tracked.upper"] >= run.records["sharpness.lower"]).all()
    assert jnp.isfinite(run.w).all()


def test_wrong_policies_are_refused():
    with pytest.raises(ArgumentError, match="call_matvecs must be a whole number ≥ 3; got 2"):
        measures.Tracker(call_matvecs=2)
    with pytest.raises(ArgumentError, match="certify_every must be a whole number ≥ 1; got 0"):
        measures.Tracker(certify_every=0)
