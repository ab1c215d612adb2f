"""Runs on a cluster of dask.distributed. The scheduler hands out runs; every run is computed in a process of its own
beside the worker, and its result goes into a shared folder, or is sent back where there is none.
"""

import asyncio
import atexit
import contextlib
import hashlib
import multiprocessing
import os
import queue
import sys
import tempfile
import threading
import time
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steppe import check
from steppe.store import Store, StoreError, address, adopt, disk_errors, files_of
from steppe.sweep._engine import Ended, Interrupted, LimitError, Watch, WorkerDiedError, ended
from steppe.sweep._processes import RETRIES, Limits, Runner

# A scheduler that is gone is waited for so long; meanwhile it may be started again.
PATIENCE_SECONDS = 300.0
_CONNECT_SECONDS, _POLL_SECONDS, _CANCEL_SECONDS = 10.0, 0.02, 60.0
# So many runs wait in a worker beside the one under way: the next one starts without asking.
_AHEAD = 1
# The cluster is asked this often how many threads it has.
_ASK_SECONDS = 1.0
_TOPIC = "steppe"


@dataclass(frozen=True)
class Job:
    """What a worker needs to know about a run. It is pickled, as everything that dask sends."""

    spec: Any
    store: Store
    token: str
    recompute: bool
    wait: bool
    limits: Limits
    sweep: str
    code: tuple[str, str] | None


class Dask:
    """An engine on a cluster. `cluster` is the address of its scheduler, or a `distributed.Client`.

    A scheduler that ends may be started again at its address: the runs that were under way are submitted again. A run
    whose worker dies is computed by another one, from its checkpoint if the folder is shared.
    """

    def __init__(
        self, cluster: Any, store: Store, *, watch: Watch, recompute: bool = False, limits: Limits | None = None,
        tls: Sequence[os.PathLike[str]] | None = None, patience: float = PATIENCE_SECONDS,
    ):  # fmt: skip
        self.store, self.watch, self.recompute = _absolute(store), watch, recompute
        self.limits, self.patience, self.sweep = limits or Limits(), patience, uuid.uuid4().hex
        self.queue: deque[tuple[Any, bool]] = deque()
        self.futures: dict[str, tuple[Any, tuple[Any, bool]]] = {}  # by run: the future, and what was submitted
        self.finished: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self.deaths: dict[str, int] = {}
        self.cancelled = False
        self.own_client = isinstance(cluster, str)
        self.security = _security(tls)
        self.address = cluster if self.own_client else cluster.scheduler.address
        self.client: Any = None
        self.scheduler = ""
        self.token = _token(self.store)
        self._connect(None if self.own_client else cluster)

    def submit(self, spec: Any, *, wait: bool) -> None:
        self.queue.append((spec, wait))

    def wait(self) -> list[Ended]:
        found: list[Ended] = []
        while not found:
            if self.cancelled:
                found += self._cancel_all()
                break
            self._feed()
            with contextlib.suppress(queue.Empty):
                found += self._ended(*self.finished.get(timeout=0.5))
                while True:
                    found += self._ended(*self.finished.get_nowait())
            if self.client.status not in ("running", "connecting"):
                self._reconnect()
        return found

    def cancel(self) -> None:
        self.cancelled = True

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.client.run(_stop_sweep, self.sweep)
        with contextlib.suppress(Exception):
            self.client.unsubscribe_topic(_TOPIC + self.sweep)
        if self.own_client:
            with contextlib.suppress(Exception):
                self.client.close(timeout=5)
        with contextlib.suppress(OSError):
            (self.store.root / ".work" / f"token-{self.token}").unlink()

    def _connect(self, client: Any) -> None:
        from distributed import Client

        try:
            self.client = client or Client(
                self.address, security=self.security, timeout=_CONNECT_SECONDS, name="steppe", set_as_default=False
            )
        except (OSError, TimeoutError) as error:
            remedy = "Start one with `dask scheduler`, or name another one."
            raise check.ArgumentError(f"no scheduler of dask answers at {self.address}: {error}. {remedy}") from None
        self.room, self.asked = 0, -_ASK_SECONDS

    def _heard(self, event: Any) -> None:
        with contextlib.suppress(Exception):
            self.watch(*event[1])

    def _feed(self) -> None:
        """Give the cluster as many runs as its threads can take, and a few more."""
        if time.monotonic() - self.asked > _ASK_SECONDS:
            with contextlib.suppress(Exception):  # it is gone: `wait` sees it
                found = self.client.scheduler_info(n_workers=-1)
                if found["id"] != self.scheduler:  # a new one knows nothing of who listens
                    self.scheduler = found["id"]
                    self.client.subscribe_topic(_TOPIC + self.sweep, self._heard)
                self.room = sum((1 + _AHEAD) * worker["nthreads"] for worker in found["workers"].values())
                self.asked = time.monotonic()
        while self.queue and len(self.futures) < self.room and self.client.status == "running":
            self._send(*self.queue.popleft())

    def _send(self, spec: Any, wait: bool) -> None:
        id, code = address(spec), _code(spec)
        job = Job(spec, self.store, self.token, self.recompute, wait, self.limits, self.sweep, code)
        future = self.client.submit(run_job, job, key=f"steppe-{id}-{uuid.uuid4().hex[:8]}", pure=False)
        self.futures[id] = future, (spec, wait)
        future.add_done_callback(lambda done: self.finished.put((id, done)))

    def _ended(self, id: str, future: Any) -> list[Ended]:
        if id not in self.futures or self.futures[id][0] is not future:
            return []  # of a scheduler that is gone
        spec, wait = self.futures.pop(id)[1]
        error: BaseException | None
        try:
            files, error = future.result(timeout=_CONNECT_SECONDS)
            if files is not None:
                adopt(self.store, id, files, replace=self.recompute)
        except StoreError as raised:
            error = raised
        except (Exception, asyncio.CancelledError) as raised:
            if future.status in ("cancelled", "lost") and not self.cancelled:  # with its scheduler
                self.queue.append((spec, wait))
                return []
            error = WorkerDiedError(str(raised))
        if isinstance(error, WorkerDiedError | Interrupted) and not self.cancelled:
            self.deaths[id] = self.deaths.get(id, 0) + 1
            if self.deaths[id] <= RETRIES:
                self.watch(id, "running", "its worker was lost; another one goes on with it")
                self.queue.append((spec, wait))
                return []
        return [ended(id, error, self.watch)]

    def _reconnect(self) -> None:
        """The scheduler is gone. Wait for it to come back, and submit again what was under way."""
        self.watch("", "waiting", f"the scheduler at {self.address} is gone; it is waited for {self.patience:g} s")
        lost = [job for _, job in self.futures.values()]
        self.futures.clear()
        self.queue.extendleft(lost)
        with contextlib.suppress(Exception):
            self.client.close(timeout=1)
        self.own_client = True
        end = time.monotonic() + self.patience
        while not self.cancelled:
            try:
                self._connect(None)
                return
            except check.ArgumentError:
                if time.monotonic() > end:
                    raise WorkerDiedError(
                        f"the scheduler at {self.address} has gone and did not come back. Finished runs are in the "
                        "store: the same command goes on."
                    ) from None
                time.sleep(1.0)

    def _cancel_all(self) -> list[Ended]:
        """Runs save their checkpoints; those that have not started do not start."""
        found = [ended(address(spec), Interrupted(), self.watch) for spec, _ in self.queue]
        self.queue.clear()
        with contextlib.suppress(Exception):
            self.client.run(_stop_sweep, self.sweep)
        end = time.monotonic() + _CANCEL_SECONDS
        while self.futures and time.monotonic() < end and self.client.status == "running":
            with contextlib.suppress(queue.Empty):
                found += self._ended(*self.finished.get(timeout=0.5))
        found += [ended(id, Interrupted(), self.watch) for id in self.futures]
        self.futures.clear()
        return found


def _absolute(store: Store) -> Store:
    return Store(store.root.absolute(), checkpoint_seconds=store.checkpoint_seconds)


def _token(store: Store) -> str:
    """A file in the store by which a worker sees whether it shares the folder."""
    token = uuid.uuid4().hex
    with disk_errors(store.root, "write"):
        (store.root / ".work").mkdir(parents=True, exist_ok=True)
        (store.root / ".work" / f"token-{token}").write_text(token, encoding="utf-8")
    return token


def _security(tls: Sequence[os.PathLike[str]] | None) -> Any:
    if tls is None:
        return None
    from distributed import Security

    authority, certificate, key = (str(path) for path in tls)
    return Security(
        require_encryption=True, tls_ca_file=authority, tls_client_cert=certificate, tls_client_key=key,
    )  # fmt: skip


def _code(spec: Any) -> tuple[str, str] | None:
    """The module of the user's function and its text, for workers that do not have the file."""
    target = getattr(spec, "target", None)
    if not isinstance(target, str) or "." in (module := target.partition(":")[0]):
        return None
    file = getattr(sys.modules.get(module), "__file__", None)
    return (module, Path(file).read_text(encoding="utf-8")) if file else None


# What follows runs in the processes of the cluster.

_idle: dict[Any, list[Runner]] = {}  # by the user's code that they have imported
_lock = threading.Lock()
_stopped: set[str] = set()
_folders: dict[str, Any] = {}


def run_job(job: Job) -> tuple[Mapping[str, bytes] | None, BaseException | None]:
    """Compute a run beside this worker. The error is returned, not raised: dask would count it as its own."""
    shared = (job.store.root / ".work" / f"token-{job.token}").is_file()
    store = job.store if shared else Store(_folder("store"), checkpoint_seconds=job.store.checkpoint_seconds)
    runner, tell, end = _runner(job.code), _teller(job), None
    runner.start(job.spec, store, recompute=job.recompute, wait=job.wait)
    while end is None:
        if job.sweep in _stopped:
            runner.cancel()
        runner.connection.poll(_POLL_SECONDS)
        end = runner.poll(job.limits, tell)
    id, error = end
    if isinstance(error, WorkerDiedError | LimitError | Interrupted):
        runner.kill()
    else:
        with _lock:
            _idle.setdefault(job.code, []).append(runner)
    if job.sweep in _stopped and isinstance(error, WorkerDiedError):
        error = Interrupted()
    return (None if shared or error is not None else files_of(store.open(id))), error


def _runner(code: tuple[str, str] | None) -> Runner:
    with _lock:
        if _idle.get(code):
            return _idle[code].pop()
        # Dask marks its workers as processes without children. Ours end themselves when their parent is gone.
        multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
    return Runner((_code_folder(code), code[0]) if code else None)


def _teller(job: Job) -> Watch:
    def tell(id: str, state: Any, news: Any) -> None:
        from distributed import get_worker

        with contextlib.suppress(Exception):
            get_worker().log_event(_TOPIC + job.sweep, (id, state, news if isinstance(news, str) else None))

    return tell


def _code_folder(code: tuple[str, str]) -> str:
    module, text = code
    folder = Path(_folder("code")) / hashlib.sha256(text.encode()).hexdigest()
    folder.mkdir(exist_ok=True)
    fresh = folder / f".{uuid.uuid4().hex}"
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(folder / f"{module}.py")
    return str(folder)


def _folder(name: str) -> str:
    """A folder of this worker that is gone with it."""
    with _lock:
        if name not in _folders:
            _folders[name] = tempfile.TemporaryDirectory(prefix=f"steppe-{name}-", ignore_cleanup_errors=True)
        return str(_folders[name].name)


def _stop_sweep(sweep: str) -> None:
    _stopped.add(sweep)


@atexit.register
def _end() -> None:
    for runners in _idle.values():
        for runner in runners:
            runner.kill()
