"""Each row compares the right two contenders. The times themselves are the task of `steppe bench sam`."""

import numpy as np

from bench import sam


def test_every_row_compares_its_own_contenders(monkeypatch):
    calls = []

    def times(contenders, *, rounds=5):
        calls.append(contenders)
        return {name: 1e-6 * len(name) for name in contenders}

    monkeypatch.setattr(sam, "find_spec", lambda name: None)  # importing PyTorch takes seconds
    monkeypatch.setattr(sam, "best_times", times)
    rows = {(row.subject, row.peer): row for row in sam.measure()}
    assert all(row.ratio == row.theirs / row.ours for row in rows.values())
    assert ("1-SAM step", "lax.scan over autodiff") in rows
    assert all(callable(work) and units > 0 for contenders in calls for work, units in contenders.values())
    for network in ("softplus", "logistic loss", "Sim-LN", "Sim-LN, W₁ projected", "Sim-BN", "depth 3"):
        name = f"1-SAM step, {network}"
        row = rows[name, "generic path"]
        np.testing.assert_allclose((row.ours, row.theirs), (len(name), len(f"{name}, generic")))  # µs
