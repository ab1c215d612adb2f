"""Sweeps on a cluster of dask on this machine, in separate processes, with and without faults."""

import os
from pathlib import Path

import pytest
from cases.toy_specs import Count

pytest.importorskip("distributed")

from bench._faults import disturbed
from bench.sweep import cluster
from steppe.check import ArgumentError
from steppe.experiments import Planned, own
from steppe.store import DATA_FILES, Store
from steppe.sweep import Dask, Interrupted, execute
from steppe.sweep import _dask as module

TESTS = (Path(__file__).parents[1], Path(__file__).parents[2])


def quiet(id, state, news):
    pass


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:  # workers find toy_specs, as they find what is installed
        patch.setenv("PYTHONPATH", os.pathsep.join(map(str, TESTS)), prepend=os.pathsep)
        with cluster(2, tmp_path_factory.mktemp("cluster")) as found:
            yield found


def same_bytes(ours, theirs):
    return all(
        (one.folder / name).read_bytes() == (other.folder / name).read_bytes()
        for one, other in zip(ours, theirs, strict=True)
        for name in DATA_FILES
    )


@pytest.mark.parametrize("shared", [True, False])
def test_the_same_bytes_as_here(address, tmp_path, monkeypatch, shared):
    """Through a shared folder, or sent back by workers that have another one."""
    if not shared:
        token = module._token

        def unseen(store):
            found = token(store)
            (store.root / ".work" / f"token-{found}").unlink()
            return found

        monkeypatch.setattr(module, "_token", unseen)
    specs, store, heard = [Count(n) for n in (2, 3, 4)], Store(tmp_path / "cluster"), []
    there = execute(specs, store, engine=lambda: Dask(address, store, watch=lambda *news: heard.append(news)))
    here = execute(specs, Store(tmp_path / "here"), workers=1)
    assert same_bytes(there, here)
    assert sum(state == "done" for _, state, _ in heard) == 3


def test_runs_of_a_function_whose_file_the_workers_lack(address, tmp_path):
    """One of them raises, which ends no other."""
    store = Store(tmp_path)
    runs = (own("cases.own_functions:numbers", a=13.0), own("cases.own_functions:slow", seed=3))
    found = Planned(({"base": 0}, {"base": 1}), runs).run(store, engine=lambda: Dask(address, store, watch=quiet))
    assert found.table()["outcome"].tolist() == ["failed", "reached"]
    assert "thirteen" in found.failures[found.ids[0]]
    assert found.table()["square"][1] == 9


def test_no_scheduler(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_CONNECT_SECONDS", 1.0)
    with pytest.raises(ArgumentError, match="no scheduler of dask answers at"):
        execute([Count(3)], Store(tmp_path), engine=lambda: Dask("tcp://127.0.0.1:9", Store(tmp_path), watch=quiet))


def test_a_cancelled_sweep_keeps_its_checkpoints(address, tmp_path):
    store = Store(tmp_path, checkpoint_seconds=1000)
    slow, engines = Count(100_000, pause=0.01), []

    def watch(id, state, news):
        if state == "running":
            engines[0].cancel()

    def engine():
        engines.append(Dask(address, store, watch=watch))
        return engines[0]

    with pytest.raises(Interrupted):
        execute([slow], store, engine=engine)


def test_forty_runs_with_six_faults(tmp_path):
    """Workers, runs and clients are killed, a second client starts: nothing is lost or different."""
    kinds = ["a worker killed", "a run's process killed", "the client killed", "a second client"]
    told = disturbed(40, faults=6, every=0.3, pause=0.005, seed=1, root=tmp_path, kinds=kinds, seconds=240)
    assert (told.same, told.lost, told.different) == (40, 0, 0)
    assert sum(told.faults.values()) >= 3
