"""The contenders of the flow benchmark end at the same point, and every number is there."""

import numpy as np
import pytest

from steppe.bench import flow as bench


def test_both_integrate_the_same_flow(monkeypatch):
    monkeypatch.setattr(bench, "DIGITS", 40)
    monkeypatch.setattr(bench, "DIGITS_WIDTH", 6)
    monkeypatch.setattr(bench, "DIGITS_TIME", 5.0)
    monkeypatch.setattr(bench, "_mnist", lambda: None)
    contest = next(bench._contests())
    ours, peer = bench._cost(contest, bench.Flow(bench.RTOL)), bench._cost(contest, bench.Flow(method="rk4"))
    gap = np.linalg.norm(ours.run.w - peer.run.w) / np.linalg.norm(peer.run.w)
    assert gap <= bench.RTOL
    for ratio in bench._compare(contest):
        assert ratio.ratio == pytest.approx(ratio.theirs / ratio.ours)
        assert np.isfinite(ratio.ratio)


def test_the_classical_method_is_counted_as_it_counts_itself():
    """4∫λ dt against its real steps to the same loss. Its own λ comes from Lanczos that stops where it changes
    by 3% and is measured anew after 10% of expected growth: seen up to 10% too small, its steps as much longer."""
    problem = bench._problem(bench.data.digits(100, test=1), "tanh", 8)
    counted, seconds = bench._counted("", problem, bench.Flow(bench.RTOL), 0.1, "")
    really = bench.run(problem, bench.Flow(method="rk4"), stop=bench.until.loss(0.1))
    assert 0.98 <= counted.theirs / (4 * really.steps) <= 1.2
    assert counted.ours == bench.run(problem, bench.Flow(bench.RTOL), stop=bench.until.loss(0.1)).gradients
    assert seconds.ratio > 0
