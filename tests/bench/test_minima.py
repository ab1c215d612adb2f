"""Both contenders take the same steps, so their times can be compared."""

import numpy as np
import pytest

from bench import minima


def test_every_contender_is_measured(monkeypatch):
    monkeypatch.setattr(minima, "STEPS", 20)
    monkeypatch.setattr(minima, "TORCH_STEPS", 2)
    monkeypatch.setattr(minima, "RUNS", 2)
    found = minima.measure()
    assert all(r.ratio == pytest.approx(r.theirs / r.ours) for r in found)
    assert all(np.isfinite([r.ours, r.theirs]).all() and r.ours > 0 for r in found)
