import os
import signal
import threading

import pytest
from store.toy import Count, Total

from steppe.store import Store, StoreError, address
from steppe.sweep._engine import Interrupted, execute


def test_in_order_and_each_once(tmp_path):
    heard = []
    specs = [Count(3), Count(5), Count(3)]
    entries = execute(specs, Store(tmp_path), workers=1, watch=lambda *news: heard.append(news))
    assert [e.result["sum"] for e in entries] == [3.0, 10.0, 3.0]
    assert [(id, state) for id, state, _ in heard] == [
        (address(Count(3)), "running"),
        (address(Count(3)), "done"),
        (address(Count(5)), "running"),
        (address(Count(5)), "done"),
    ]
    heard.clear()
    execute(specs, Store(tmp_path), workers=1, watch=lambda *news: heard.append(news))
    assert heard == []


def test_processes_give_the_same_bytes(tmp_path):
    specs = [Count(n) for n in (2, 3, 4)]
    one, two = (execute(specs, Store(tmp_path / str(w)), workers=w) for w in (1, 2))
    for a, b in zip(one, two, strict=True):
        for name in ("result.json", "curves.parquet", "params.safetensors"):
            assert (a.folder / name).read_bytes() == (b.folder / name).read_bytes()


def test_ctrl_c_checkpoints_and_the_same_call_goes_on(tmp_path):
    store, slow = Store(tmp_path, checkpoint_seconds=1000), Count(1000, pause=0.01)
    before = signal.getsignal(signal.SIGINT)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(Interrupted):
        execute([slow], store, workers=1)
    saved = store._checkpoint(address(slow)).load()["done"]
    assert 1 <= len(saved) < 1000
    assert store.ids() == []
    assert signal.getsignal(signal.SIGINT) is before


def test_the_error_of_a_worker_reaches_the_caller(tmp_path):
    with pytest.raises(ValueError, match="below zero"):
        execute([Count(-1), Count(-2)], Store(tmp_path), workers=2)


SUMS = {n: n * (n - 1) / 2 for n in range(20)}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_of_parts(tmp_path, workers):
    """Its parts are computed, those of the second round after the first, and shared with whoever else wants them."""
    store, heard = Store(tmp_path), []
    wanted = [Total(3), Count(4), Total(3, rounds=1)]
    entries = execute(wanted, store, workers=workers, watch=lambda *news: heard.append(news))
    first, second = SUMS[3] + SUMS[4], SUMS[6] + SUMS[7]
    assert [e.result.get("total") for e in entries] == [first + second, None, first]
    done = [id for id, state, _ in heard if state == "done"]
    assert len(done) == len(set(done)) == len(store.ids()) == 6  # 3, 4, 6, 7 and both totals
    assert max(done.index(address(Count(n))) for n in (3, 4)) < min(done.index(address(Count(n))) for n in (6, 7))
    heard.clear()
    execute(wanted, store, workers=workers, watch=lambda *news: heard.append(news))
    assert heard == []


def test_a_run_of_parts_that_are_there_is_only_put_together(tmp_path):
    store = Store(tmp_path)
    execute([part for parts in Total(3).parts() for part in parts], store, workers=1)
    heard = []
    execute([Total(3)], store, workers=2, watch=lambda *news: heard.append(news))
    assert {id for id, *_ in heard} == {address(Total(3))}


@pytest.mark.parametrize("workers", [1, 2])
def test_computed_again_with_all_parts(tmp_path, workers):
    """A damaged part too; without being asked to, nothing is computed on it."""
    store = Store(tmp_path)
    execute([Total(3)], store, workers=1)
    store.remove(address(Total(3)))
    (tmp_path / address(Count(4)) / "result.json").write_text("{}")
    with pytest.raises(StoreError, match=r"result\.json"):
        execute([Total(3)], store, workers=workers)
    heard = []
    (entry,) = execute([Total(3)], store, workers=workers, recompute=True, watch=lambda *news: heard.append(news))
    assert entry.result["total"] == sum(SUMS[n] for n in (3, 4, 6, 7))
    assert len([id for id, state, _ in heard if state == "done"]) == 5


def test_parts_that_are_not_worth_it(tmp_path):
    (entry,) = execute([Total(3, apart=False)], Store(tmp_path), workers=2)
    assert entry.result["total"] == -1


@pytest.mark.parametrize("workers", [1, 2])
def test_the_error_of_a_part(tmp_path, workers):
    """The parts that were finished are kept."""
    store = Store(tmp_path)
    with pytest.raises(ValueError, match="below zero"):
        execute([Total(-1)], store, workers=workers)
    assert set(store.ids()) <= {address(Count(0))}
