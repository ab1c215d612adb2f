"""The two contenders take the same steps, so that their times can be compared."""

import numpy as np
import pytest

from steppe.bench import minima as bench


def test_every_contender_is_measured(monkeypatch):
    monkeypatch.setattr(bench, "STEPS", 20)
    monkeypatch.setattr(bench, "TORCH_STEPS", 2)
    monkeypatch.setattr(bench, "RUNS", 2)
    found = bench.measure()
    assert all(r.ratio == pytest.approx(r.theirs / r.ours) for r in found)
    assert all(np.isfinite([r.ours, r.theirs]).all() and r.ours > 0 for r in found)
