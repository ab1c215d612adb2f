import os
import signal
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import pytest
from cases.toy_specs import Count, Total

from steppe.store import Store, StoreError, address
from steppe.sweep import Ended, Interrupted, execute
from steppe.sweep._engine import compute


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
    assert sorted(heard) == sorted((address(Count(n)), "stored", None) for n in (3, 5))


def test_processes_give_the_same_bytes(tmp_path):
    specs = [Count(n) for n in (2, 3, 4)]
    one, two = (execute(specs, Store(tmp_path / str(w)), workers=w) for w in (1, 2))
    for a, b in zip(one, two, strict=True):
        for name in ("result.json", "curves.parquet", "params.safetensors"):
            assert (a.folder / name).read_bytes() == (b.folder / name).read_bytes()


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_checkpoints_and_the_same_call_goes_on(tmp_path, asked):
    store, slow = Store(tmp_path, checkpoint_seconds=1000), Count(1000, pause=0.01)
    before = signal.getsignal(asked)
    threading.Timer(0.3, os.kill, (os.getpid(), asked)).start()
    with pytest.raises(Interrupted):
        execute([slow], store, workers=1)
    saved = store._checkpoint(address(slow)).load()["done"]
    assert 1 <= len(saved) < 1000
    assert store.ids() == []
    assert signal.getsignal(asked) is before


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
    assert sorted(heard) == sorted((address(spec), "stored", None) for spec in wanted)


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
    (entry,) = execute([Total(3, split=False)], Store(tmp_path), workers=2)
    assert entry.result["total"] == -1


@pytest.mark.parametrize("workers", [1, 2])
def test_the_error_of_a_part(tmp_path, workers):
    """The parts that were finished are kept."""
    store = Store(tmp_path)
    with pytest.raises(ValueError, match="below zero"):
        execute([Total(-1)], store, workers=workers)
    assert set(store.ids()) <= {address(Count(0))}


class Threads:
    """Another engine, as a cluster would have it: runs are computed elsewhere, results come by the store."""

    def __init__(self, store, watch):
        self.store, self.watch = store, watch
        self.pool, self.under_way, self.cancelled = ThreadPoolExecutor(3), {}, threading.Event()

    def submit(self, spec, *, wait):
        options = {"recompute": False, "wait": wait, "cancelled": self.cancelled.is_set, "watch": self.watch}
        self.under_way[self.pool.submit(compute, spec, self.store, **options)] = address(spec)

    def wait(self):
        done = wait(self.under_way, return_when=FIRST_COMPLETED).done
        return [Ended(self.under_way.pop(future), future.exception()) for future in done]

    def cancel(self):
        self.cancelled.set()

    def close(self):
        self.pool.shutdown()


def test_another_engine(tmp_path):
    specs = [Total(3), Count(4), Total(3, rounds=1)]
    stores = Store(tmp_path / "threads"), Store(tmp_path / "local")
    threads = execute(specs, stores[0], engine=lambda: Threads(stores[0], lambda *news: None))
    local = execute(specs, stores[1], workers=1)
    assert [e.result for e in threads] == [e.result for e in local]
    assert stores[0].ids() == stores[1].ids()
    with pytest.raises(ValueError, match="below zero"):
        execute([Count(-1), Count(100, pause=0.01)], stores[0], engine=lambda: Threads(stores[0], lambda *news: None))
