"""The benchmark of sweeps: it runs, and every run is in the store."""

from bench.sweep import _local


def test_overhead_of_a_local_run():
    (ratio,) = _local(1, 3)
    assert ratio.unit == "ms a run"
    assert ratio.ours > 0
