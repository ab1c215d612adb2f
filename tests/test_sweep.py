import os
import signal
import threading

import pytest
from store.toy import Count

from steppe.store import Store, address
from steppe.sweep import Interrupted, execute


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
