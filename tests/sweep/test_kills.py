"""Processes that are killed: workers end with their parent, and a killed worker is an error that says what to do."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from cases.toy_specs import Count

from steppe.store import Store, address
from steppe.sweep import WorkerDiedError, execute, map_processes

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")

SLOW = [Count(100_000, pause=0.01), Count(100_001, pause=0.01)]
SCRIPT = """
import signal, sys; sys.path.insert(0, {tests!r})
# A shell that starts a job in the background has it ignore Ctrl-C, and so would this.
signal.signal(signal.SIGINT, signal.default_int_handler)
import time
from cases.toy_specs import Count, Deaf
from steppe.store import Store
from steppe.sweep import execute, map_processes
if __name__ == "__main__":
    {call}
"""
EXECUTE = "execute([Count(100_000, pause=0.01), Count(100_001, pause=0.01)], Store({root!r}), workers=2)"
MAP = "list(map_processes(time.sleep, [300, 300], workers=2))"


def parent_of(pid):
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except (OSError, IndexError):
        return None


def workers_of(pid):
    """The worker processes of a pool: the children, apart from the tracker of shared resources."""
    found = [int(p.name) for p in Path("/proc").glob("[0-9]*") if parent_of(p.name) == pid]
    return [p for p in found if b"spawn_main" in _command(p)]


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (OSError, IndexError):
        return False


def wait_until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def begun(root):
    return all((root / ".work" / address(spec) / "lock").exists() for spec in SLOW)


def started(tmp_path, call, **options):
    script = tmp_path / "parent.py"
    call = call.format(root=str(tmp_path / "runs"))
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parents[1]), call=call))
    return subprocess.Popen([sys.executable, script], **options)


def checkpoints(tmp_path):
    return [tmp_path / "runs" / ".work" / address(spec) / "checkpoint.safetensors" for spec in SLOW]


@pytest.mark.parametrize("call", [EXECUTE, MAP], ids=["execute", "map_processes"])
def test_workers_do_not_outlive_a_killed_parent(tmp_path, call):
    """Runs save their checkpoints first."""
    with started(tmp_path, call) as parent:
        wait_until(lambda: len(workers_of(parent.pid)) == 2 and (call == MAP or begun(tmp_path / "runs")))
        workers = workers_of(parent.pid)
        parent.kill()
    wait_until(lambda: not any(map(alive, workers)), seconds=20)
    assert call == MAP or all(path.exists() for path in checkpoints(tmp_path))


def test_a_signal_to_all_processes_checkpoints_every_run(tmp_path):
    """As batch systems send it: to the command and to its workers."""
    with started(tmp_path, EXECUTE, start_new_session=True, stderr=subprocess.PIPE) as parent:
        wait_until(lambda: begun(tmp_path / "runs"))
        os.killpg(parent.pid, signal.SIGTERM)
        assert b"Interrupted" in parent.stderr.read()
    assert all(path.exists() for path in checkpoints(tmp_path))


def kill_workers(root, spec, times, killed):
    """Kill whoever computes this run, so many times."""
    lock = root / ".work" / address(spec) / "lock"
    for _ in range(times):
        wait_until(lambda: any(holds(pid, lock) and pid not in killed for pid in workers_of(os.getpid())))
        (pid,) = [pid for pid in workers_of(os.getpid()) if holds(pid, lock) and pid not in killed]
        killed.append(pid)
        os.kill(pid, signal.SIGKILL)


def holds(pid, path):
    """Whether a process has a file open."""
    try:
        return any(os.path.realpath(link) == str(path) for link in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def test_a_run_goes_on_after_its_worker_was_killed(tmp_path):
    """With the same bytes as one that nobody disturbed, and what others compute meanwhile is not lost."""
    specs, killed, heard = [Count(60, pause=0.02), *(Count(n, pause=0.02) for n in range(10, 14))], [], []
    store = Store(tmp_path / "killed", checkpoint_seconds=0.1)
    killer = threading.Thread(target=kill_workers, args=(store.root, specs[0], 2, killed))
    killer.start()
    ended = execute(specs, store, workers=2, watch=lambda *news: heard.append(news))
    killer.join()
    whole = execute(specs, Store(tmp_path / "whole"), workers=1)
    for one, other in zip(ended, whole, strict=True):
        for name in ("result.json", "curves.parquet", "params.safetensors"):
            assert (one.folder / name).read_bytes() == (other.folder / name).read_bytes()
    assert sum(isinstance(news, str) and "killed from outside" in news for *_, news in heard) == 2


def test_a_run_whose_worker_is_killed_again_and_again_is_one_error(tmp_path):
    killed = []
    killer = threading.Thread(target=kill_workers, args=(tmp_path, SLOW[0], 3, killed))
    killer.start()
    with pytest.raises(WorkerDiedError, match=r"killed from outside.*the same command goes on.*--workers"):
        execute(SLOW, Store(tmp_path), workers=2)
    killer.join()
    assert not any(map(alive, killed))


def test_a_killed_worker_of_a_map():
    with pytest.raises(WorkerDiedError, match="killed from outside"):
        list(map_processes(kill_yourself, [1, 2], workers=2))


def kill_yourself(_):
    os.kill(os.getpid(), signal.SIGKILL)


def test_the_second_ctrl_c_ends_at_once(tmp_path):
    """The first waits for checkpoints; these runs never look at theirs."""
    deaf = "execute([Deaf(1), Deaf(2)], Store({root!r}), workers=2)"
    with started(tmp_path, deaf, stderr=subprocess.PIPE) as parent:
        wait_until(lambda: len(list((tmp_path / "runs").glob(".work/*/lock"))) == 2)
        workers = workers_of(parent.pid)
        for _ in range(2):
            parent.send_signal(signal.SIGINT)
            time.sleep(0.5)
        assert b"KeyboardInterrupt" in parent.stderr.read()
    wait_until(lambda: not any(map(alive, workers)), seconds=20)


def test_an_unusable_checkpoint_is_told(tmp_path):
    import numpy as np

    store, heard = Store(tmp_path), []
    checkpoint = store._checkpoint(address(Count(4)))
    checkpoint.path.parent.mkdir(parents=True)
    checkpoint.save({"done": np.array([7.0])})
    checkpoint.path.write_bytes(checkpoint.path.read_bytes()[:-1])
    (entry,) = execute([Count(4)], store, workers=1, watch=lambda *news: heard.append(news))
    assert entry.result == {"sum": 6.0}
    assert (entry.id, "running", "its checkpoint is damaged; the run begins anew") in heard


def test_a_stored_run_of_another_version_is_told(tmp_path, monkeypatch):
    store, heard = Store(tmp_path), []
    with monkeypatch.context() as patched:
        patched.setattr("steppe.__version__", "0.0.9")
        execute([Count(4)], store, workers=1)
    (entry,) = execute([Count(4)], store, workers=1, watch=lambda *news: heard.append(news))
    assert entry.version != "0.0.9"
    assert any(isinstance(news, str) and "the stored run is of steppe 0.0.9" in news for *_, news in heard)
