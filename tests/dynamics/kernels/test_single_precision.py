"""Runs in float32, in processes of their own: bits that do not depend on where the compiled code came from."""

import os
import subprocess
import sys
from pathlib import Path

import kernel_family as family
import kernel_oracle as oracle
import numpy as np

import steppe


def runs_of_a_process(cache, folder, *begun):
    folder.mkdir()
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(Path(steppe.__file__).parents[1])}
    subprocess.run([sys.executable, family.__file__, folder, *begun], env=environment, check=True)
    return [dict(np.load(folder / f"{part}.npz")) for part in ("half", "whole", "position")]


def test_the_same_bits_compiled_afresh_or_from_the_cache_or_resumed(tmp_path):
    """One test, since the fresh cache takes seconds to fill.

    The second process computes the first half from the cache, and the second half from the states of the first process.
    """
    cache, begun = tmp_path / "cache", tmp_path / "fresh"
    fresh = runs_of_a_process(cache, begun)
    assert any(cache.rglob("*.nbc"))
    cached = runs_of_a_process(cache, tmp_path / "cached", begun)
    for name, move in family.SINGLE_RUNS:
        run = f"{name} {move}"
        for part, again in zip(fresh, cached, strict=True):
            assert part[run].tobytes() == again[run].tobytes(), run
        assert not np.array_equal(fresh[0][run], fresh[1][run])
        p, dynamics = family.single_run(name, move)
        exact = oracle.train(p, dynamics, family.orders_of(p, dynamics), family.WHOLE, family.KEY)
        # Each of the steps adds rounding errors of a few units in the last place of weights around 1.
        tolerance = family.WHOLE * 8 * np.finfo(np.float32).eps
        np.testing.assert_allclose(fresh[2][run], exact, atol=tolerance, err_msg=run)
