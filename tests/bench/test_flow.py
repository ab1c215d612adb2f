"""The methods of the flow benchmark end at the same point, and all numbers are finite."""

from dataclasses import replace

import numpy as np
import pytest

from bench import flow
from steppe.activations import relu, tanh

RTOL = 3e-3
DIGITS, WIDTH = 100, 8


def test_both_integrate_the_same_flow(monkeypatch):
    monkeypatch.setattr(flow, "DIGITS", DIGITS)
    monkeypatch.setattr(flow, "DIGITS_WIDTH", WIDTH)
    monkeypatch.setattr(flow, "DIGITS_TIME", 5.0)
    monkeypatch.setattr(flow, "_mnist", lambda: None)
    smooth, kinked = flow._contests()
    assert [(c.smooth, c.problem.predict.activation) for c in (smooth, kinked)] == [(True, tanh), (False, relu)]
    ours, peer = (flow._cost(smooth, dynamics).run.w for dynamics in (flow.Flow(RTOL), flow.CLASSICAL))
    assert np.linalg.norm(ours - peer) <= RTOL * np.linalg.norm(peer - smooth.problem.w0)
    descent = flow._descent(smooth, peer)  # a method of first order at a quarter of 1/λ: less exact than both
    assert np.linalg.norm(descent - peer) <= flow.DESCENT * np.linalg.norm(peer - smooth.problem.w0)
    # The comparison for ReLU works for any network: this one's flows are compiled already.
    for ratio in flow._compare(smooth) + flow._compare(replace(kinked, problem=smooth.problem)):
        assert ratio.ratio == pytest.approx(ratio.theirs / ratio.ours)
        assert np.isfinite(ratio.ratio)


def test_the_count_for_the_classical_method_is_close_to_its_real_one():
    """4∫λ dt against its real steps to the same loss.

    It takes its λ from a Lanczos iteration that stops at a change of 3%, and measures λ again after an expected growth
    of 10%. We saw this λ up to 10% too small, which makes its steps 10% longer.
    """
    problem = flow._problem(flow.data.digits(DIGITS, test=1), "tanh", WIDTH)
    counted, seconds = flow._counted("", problem, flow.Flow(RTOL), 0.1, "")
    really = flow.run(problem, flow.CLASSICAL, stop=flow.until.loss(0.1))
    assert 0.98 <= counted.theirs / (4 * really.steps) <= 1.2
    assert counted.ours == flow.run(problem, flow.Flow(RTOL), stop=flow.until.loss(0.1)).gradients
    assert seconds.ratio > 0


@pytest.mark.parametrize("sizes", [(1.0, 1.0, 1.0), (0.3, 1.0, 2.0)])
def test_own_errors_are_those_planted(sizes):
    """Random errors in p dimensions have cosines of about p^−½; the tolerance is four times that."""
    p = 100_000
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(p)
    errors = [size * v / np.linalg.norm(v) for size, v in zip(sizes, rng.standard_normal((3, p)), strict=True)]
    found = flow.own_errors(*(truth + e for e in errors))
    # The error of each square is 2 e_i e_j cos, at most that of the two largest.
    slack = 4 * p**-0.5 * 2 * np.prod(sorted(sizes)[1:])
    np.testing.assert_allclose(np.square(found), np.square(sizes), atol=slack)


def test_an_error_far_below_the_others_is_zero():
    assert flow.own_errors([0.0, 0.0], [1.0, 0.0], [2.0, 0.0])[1] == 0.0
