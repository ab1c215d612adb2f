"""The contenders of the flow benchmark end at the same point, and every number is there."""

from dataclasses import replace

import numpy as np
import pytest

from steppe.activations import relu, tanh
from steppe.bench import flow as bench
from steppe.bench.three_cornered import own_errors

RTOL = 3e-3
DIGITS, WIDTH = 100, 8


def test_both_integrate_the_same_flow(monkeypatch):
    monkeypatch.setattr(bench, "DIGITS", DIGITS)
    monkeypatch.setattr(bench, "DIGITS_WIDTH", WIDTH)
    monkeypatch.setattr(bench, "DIGITS_TIME", 5.0)
    monkeypatch.setattr(bench, "_mnist", lambda: None)
    smooth, kinked = bench._contests()
    assert [(c.smooth, c.problem.predict.activation) for c in (smooth, kinked)] == [(True, tanh), (False, relu)]
    ours, peer = (bench._cost(smooth, flow).run.w for flow in (bench.Flow(RTOL), bench.Flow(method="rk4")))
    assert np.linalg.norm(ours - peer) <= RTOL * np.linalg.norm(peer - smooth.problem.w0)
    descent = bench._descent(smooth, peer)  # at a quarter of 1/λ: of first order, so further off than both
    assert np.linalg.norm(descent - peer) <= bench.DESCENT * np.linalg.norm(peer - smooth.problem.w0)
    # How the flows of kinks are compared needs none: the same network, whose flows are compiled already.
    for ratio in bench._compare(smooth) + bench._compare(replace(kinked, problem=smooth.problem)):
        assert ratio.ratio == pytest.approx(ratio.theirs / ratio.ours)
        assert np.isfinite(ratio.ratio)


def test_the_classical_method_is_counted_as_it_counts_itself():
    """4∫λ dt against its real steps to the same loss. Its own λ comes from Lanczos that stops where it changes
    by 3% and is measured anew after 10% of expected growth: seen up to 10% too small, its steps as much longer."""
    problem = bench._problem(bench.data.digits(DIGITS, test=1), "tanh", WIDTH)
    counted, seconds = bench._counted("", problem, bench.Flow(RTOL), 0.1, "")
    really = bench.run(problem, bench.Flow(method="rk4"), stop=bench.until.loss(0.1))
    assert 0.98 <= counted.theirs / (4 * really.steps) <= 1.2
    assert counted.ours == bench.run(problem, bench.Flow(RTOL), stop=bench.until.loss(0.1)).gradients
    assert seconds.ratio > 0


@pytest.mark.parametrize("sizes", [(1.0, 1.0, 1.0), (0.3, 1.0, 2.0)])
def test_own_errors_are_those_planted(sizes):
    """Random errors in p dimensions have cosines of about p^−½; four of them are the tolerance."""
    p = 100_000
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(p)
    errors = [size * v / np.linalg.norm(v) for size, v in zip(sizes, rng.standard_normal((3, p)), strict=True)]
    found = own_errors(*(truth + e for e in errors))
    # The square of each is off by 2 e_i e_j cos: by at most that of the two largest.
    slack = 4 * p**-0.5 * 2 * np.prod(sorted(sizes)[1:])
    np.testing.assert_allclose(np.square(found), np.square(sizes), atol=slack)


def test_an_error_far_below_the_others_is_none():
    assert own_errors([0.0, 0.0], [1.0, 0.0], [2.0, 0.0])[1] == 0.0
