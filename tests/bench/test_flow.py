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
