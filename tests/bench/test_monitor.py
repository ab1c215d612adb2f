"""Each row compares the right two loops. The times themselves are the task of `steppe bench monitor`."""

from importlib.util import find_spec

import pytest

from bench import monitor


@pytest.mark.skipif(find_spec("torch.autograd") is None, reason="needs PyTorch")
def test_every_row_compares_its_own_loops(monkeypatch):
    calls = []

    def timed(step, count):
        calls.append(step)
        step()
        return float(len(calls) % 4 + 1)

    monkeypatch.setattr(monitor, "STEPS", {"MLP": 500})
    monkeypatch.setattr(monitor, "BATCH", 4)
    monkeypatch.setattr(monitor, "_timed", timed)
    with_monitor, sam = monitor.measure()
    assert (with_monitor.peer, sam.peer) == ("bare loop", "two steps of SGD")
    assert with_monitor.ratio == with_monitor.theirs / with_monitor.ours
    assert len(set(calls)) == 4
    # 20 turns of bare then monitored: 2 s and 3 s, 4 s and 1 s, in turn; and the construction of the monitor.
    assert with_monitor.theirs == pytest.approx(1e3 * 60 / 500)
    assert with_monitor.ours >= 1e3 * 40 / 500


def test_without_torch_there_is_nothing_to_compare(monkeypatch):
    monkeypatch.setattr(monitor, "find_spec", lambda name: None)
    assert monitor.measure() == []
