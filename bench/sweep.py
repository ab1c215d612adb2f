"""Overhead of a run in a sweep: over a bare loop, against joblib and plain dask.delayed, on simulated work.

Each run sleeps a tenth of a second, so that more workers than cores can be measured. Overhead is the wall clock of all
runs less what the sleeps alone take on so many workers, divided by the runs that each worker computed. Ours writes
every run to the store, with checksums and synced; the peers keep a number in memory.
"""

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steppe.store import Computed, Store
from steppe.sweep import Dask, Engine, Pending, Processes, drive

from . import Ratio

RUNS, SECONDS = 200, 0.1


@dataclass(frozen=True)
class Sleep:
    """A run that computes nothing for a while."""

    seed: int
    seconds: float = SECONDS

    def compute(self, checkpoint: Any, progress: Any = None) -> Computed:
        return Computed({"step": np.arange(1)}, {}, {"final": {"square": sleep(self.seed, self.seconds)}})


def sleep(seed: int, seconds: float = SECONDS) -> int:
    time.sleep(seconds)
    return seed**2


def measure() -> list[Ratio]:
    return [*_local(2, RUNS), *(ratio for workers in (2, 4, 8) for ratio in _cluster(workers, RUNS))]


def _overhead(call: Callable[[int, int], None], runs: int, workers: int) -> float:
    """Milliseconds a run of one worker, after a warm-up that starts all processes."""
    call(0, 2 * workers)
    started = time.perf_counter()
    call(2 * workers, runs)
    each = -(-runs // workers)
    return ((time.perf_counter() - started) / each - SECONDS) * 1e3


class _Kept:
    """An engine that stays open between two sweeps: what is measured is runs, not the start of processes."""

    def __init__(self, engine: Engine):
        self.engine = engine
        self.submit, self.wait, self.cancel = engine.submit, engine.wait, engine.cancel

    def close(self) -> None:
        pass


def _ours(engine: Engine, store: Store, runs: int, workers: int) -> float:
    kept = _Kept(engine)

    def sweep(first: int, count: int) -> None:
        drive(lambda: kept, Pending([Sleep(first + k) for k in range(count)], store))

    try:
        return _overhead(sweep, runs, workers)
    finally:
        engine.close()


def _ratio(subject: str, peer: str, ours: float, theirs: float, note: str = "") -> Ratio:
    return Ratio(subject, peer, round(ours, 2), round(theirs, 2), "ms a run", round(theirs / ours, 3), note)


def _local(workers: int, runs: int) -> Iterator[Ratio]:
    from joblib import Parallel, delayed

    with tempfile.TemporaryDirectory() as root:
        store = Store(root)
        engine = Processes(store, workers=workers, watch=lambda id, state, news: None)
        ours = _ours(engine, store, runs, workers)
    with Parallel(n_jobs=workers) as pool:
        theirs = _overhead(lambda first, n: pool(delayed(sleep)(first + k) for k in range(n)), runs, workers)
    yield _ratio(f"local, {workers} workers", "joblib", ours, theirs, "ours keeps every run; at most 5 ms wanted")


def _cluster(workers: int, runs: int) -> Iterator[Ratio]:
    from dask import delayed
    from distributed import Client

    with tempfile.TemporaryDirectory() as root, cluster(workers, Path(root)) as address:
        store = Store(Path(root) / "runs")
        engine = Dask(address, store, watch=lambda id, state, news: None)
        ours = _ours(engine, store, runs, workers)
        with Client(address, set_as_default=False) as client:

            def theirs(first: int, count: int) -> None:
                tasks = [delayed(sleep)(first + k) for k in range(count)]
                client.gather(client.compute(tasks))

            peer = _overhead(theirs, runs, workers)
    yield _ratio(f"dask, {workers} workers", "dask.delayed", ours, peer, "ours keeps every run; at most 15 ms wanted")


@contextlib.contextmanager
def cluster(workers: int, root: Path) -> Iterator[str]:
    """A scheduler and a worker with so many threads on this machine: its address."""
    file = root / "scheduler.json"
    options = ["--no-dashboard", "--scheduler-file", str(file)]
    commands = [
        ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", *options],
        [
            "distributed.cli.dask_worker",
            *options,
            "--nthreads",
            str(workers),
            "--no-nanny",
            "--local-directory",
            str(root),
        ],
    ]
    log = (root / "cluster.log").open("ab")
    running = [subprocess.Popen([sys.executable, "-m", *c], stdout=log, stderr=log, cwd=root) for c in commands]
    try:
        from distributed import Client

        while not file.exists() or not file.read_text():
            time.sleep(0.05)
        with Client(scheduler_file=str(file), set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)
            found: str = client.scheduler.address
        yield found
    finally:
        for process in running:
            process.kill()
        for process in running:
            process.wait()
        log.close()
