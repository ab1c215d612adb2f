"""Runs in float32: bits that do not depend on where the compiled code came from."""

import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cases import kernel_family as family
from numba.core.dispatcher import Dispatcher
from oracles import kernel_oracle as oracle

import steppe
from steppe import kernels
from steppe.kernels.training import descend

# Each of the steps adds rounding errors of a few units in the last place of weights around 1.
TOLERANCE = family.WHOLE * 8 * np.finfo(np.float32).eps


def exact(name, move):
    p, dynamics = family.single_run(name, move)
    return oracle.train(p, dynamics, family.orders_of(p, dynamics), family.WHOLE, family.KEY)


@pytest.mark.parametrize(("name", "move"), family.SHARED_RUNS)
def test_near_the_formulas_written_out_and_resumed_the_same(name, move):
    p, dynamics = family.single_run(name, move)
    path = family.build(p, dynamics)
    whole = family.carry(path, p, dynamics, path.start(p.w0), family.WHOLE)[0]
    half = family.carry(path, p, dynamics, path.start(p.w0), family.HALF)[0]
    again = family.build(p, dynamics)
    resumed = family.carry(again, p, dynamics, half.copy(), family.WHOLE, done=family.HALF)[0]
    assert whole.tobytes() == resumed.tobytes()
    assert not np.array_equal(half, whole)
    np.testing.assert_allclose(path.position(whole), exact(name, move), atol=TOLERANCE)


def test_no_function_of_any_kernel_is_compiled_with_fastmath():
    """With it the code of a first run is not that of the cache: the next test sees it for some kernels only."""
    modules = [importlib.import_module(m.name) for m in pkgutil.iter_modules(kernels.__path__, kernels.__name__ + ".")]
    found = {f for module in modules for f in vars(module).values() if isinstance(f, Dispatcher)}
    assert descend in found
    assert not [f for f in found if f.targetoptions.get("fastmath")]


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
    for name, move in family.FRESH_RUNS:
        run = f"{name} {move}"
        for part, again in zip(fresh, cached, strict=True):
            assert part[run].tobytes() == again[run].tobytes(), run
        assert not np.array_equal(fresh[0][run], fresh[1][run])
        np.testing.assert_allclose(fresh[2][run], exact(name, move), atol=TOLERANCE, err_msg=run)
