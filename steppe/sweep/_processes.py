"""Processes of this machine: each computes one run at a time and is watched, so that its end harms no other run."""

import contextlib
import importlib
import math
import os
import pickle
import signal
import sys
import time
import traceback
from collections import deque
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any

from steppe.store import Store, address
from steppe.sweep._engine import KILLED, Ended, Interrupted, LimitError, Watch, WorkerDiedError, compute, ended
from steppe.sweep._spawn import SPAWN, gone, obey, one_thread_each

# The limits are checked this often. News of one run are sent at most this often.
_LIMIT_SECONDS, _NEWS_SECONDS = 0.1, 0.2
# A run whose process was killed from outside is computed again, from its checkpoint, so many times.
RETRIES = 2


@dataclass(frozen=True)
class Limits:
    """What one run may take: bytes of memory, and seconds."""

    memory: float = math.inf
    seconds: float = math.inf


class Runner:
    """A process that computes one run at a time. It is not `alive` after it was killed."""

    def __init__(self, code: tuple[str, str] | None = None) -> None:
        """`code`: a folder and the name of a module in it, which the process imports first."""
        self.connection, theirs = SPAWN.Pipe()
        with one_thread_each():
            self.process = SPAWN.Process(target=_serve, args=(theirs, os.getpid(), code))
            self.process.start()
        theirs.close()
        self.id, self.started, self.killed_for, self.ready = "", 0.0, "", False

    def start(self, spec: Any, store: Store, *, recompute: bool, wait: bool) -> None:
        self.id, self.started, self.killed_for = address(spec), time.monotonic(), ""
        with contextlib.suppress(OSError):  # it is dead: `poll` tells
            self.connection.send((spec, store, recompute, wait))

    def poll(self, limits: Limits, watch: Watch) -> Ended | None:
        """The end of the run, if it has come. Its news go to `watch`. A run beyond its limits is killed."""
        try:
            while self.connection.poll():
                message = self.connection.recv()
                if message[0] == "ended":
                    return Ended(self.id, message[1])
                if message[0] == "ready":  # to start a process takes seconds, which are not the run's
                    self.ready, self.started = True, time.monotonic()
                else:
                    watch(*message[1:])
        except (EOFError, OSError, pickle.UnpicklingError):
            self.kill()
            return Ended(self.id, LimitError(self.killed_for) if self.killed_for else WorkerDiedError(KILLED))
        if math.isfinite(limits.memory) and (used := resident(self.process.pid)) > limits.memory:
            sizes = f"{used / 2**30:.2f} GiB of memory, more than {limits.memory / 2**30:.2f}"
            self.killed_for = f"the run took {sizes}, and was ended. --run-gigabytes allows more."
        elif self.ready and time.monotonic() - self.started > limits.seconds:
            self.killed_for = f"the run took more than {limits.seconds:g} s and was ended. --run-seconds allows more."
        if self.killed_for:
            self.process.kill()
        return None

    def cancel(self) -> None:
        """Ask the run to save its checkpoint and stop."""
        if self.process.is_alive():
            self.process.terminate()

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def resident(pid: int | None) -> int:
    """Bytes of memory of a process; 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def memory_share(workers: int | None = None) -> float:
    """Bytes of memory that each of so many runs may take: nine tenths of what the machine or its container has."""
    limits = [float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            limits.append(float(Path(path).read_text()))
    return 0.9 * min(limits) / (workers or os.cpu_count() or 1)


class Processes:
    """Processes of this machine, each with one thread, so that the cores share the runs fairly.

    A run whose process is killed is computed again in another one, from its checkpoint.
    """

    def __init__(
        self, store: Store, *, workers: int, recompute: bool = False, watch: Watch, limits: Limits | None = None
    ):
        self.store, self.recompute, self.watch, self.limits = store, recompute, watch, limits or Limits()
        self.workers, self.cancelled = workers, False
        self.queue: deque[tuple[Any, bool]] = deque()
        self.idle: list[Runner] = []
        self.busy: dict[Runner, tuple[Any, bool]] = {}
        self.deaths: dict[str, int] = {}

    def submit(self, spec: Any, *, wait: bool) -> None:
        self.queue.append((spec, wait))

    def wait(self) -> list[Ended]:
        finished: list[Ended] = []
        while not finished:
            if self.cancelled:
                finished += [ended(address(spec), Interrupted(), self.watch) for spec, _ in self.queue]
                self.queue.clear()
                for runner in self.busy:
                    runner.cancel()
            while self.queue and len(self.busy) < self.workers:
                self._start(*self.queue.popleft())
            if self.busy and not finished:
                wait_for([runner.connection for runner in self.busy], timeout=_LIMIT_SECONDS)
            for runner in list(self.busy):
                if (end := runner.poll(self.limits, self.watch)) is not None:
                    finished += self._over(runner, end)
        return finished

    def cancel(self) -> None:
        self.cancelled = True  # from another thread: `wait` tells the runners

    def close(self) -> None:
        for runner in (*self.busy, *self.idle):
            runner.kill()

    def _start(self, spec: Any, wait: bool) -> None:
        runner = self.idle.pop() if self.idle else Runner()
        self.busy[runner] = spec, wait
        runner.start(spec, self.store, recompute=self.recompute, wait=wait)

    def _over(self, runner: Runner, end: Ended) -> list[Ended]:
        job, (id, error) = self.busy.pop(runner), end
        died = isinstance(error, WorkerDiedError)
        if died or isinstance(error, LimitError | Interrupted):
            runner.kill()  # one that was asked to stop does not start another run
        else:
            self.idle.append(runner)
        if self.cancelled and died:
            error = Interrupted()
        elif not self.cancelled and (died or isinstance(error, Interrupted)):
            self.deaths[id] = self.deaths.get(id, 0) + 1
            if self.deaths[id] <= RETRIES:
                self.watch(id, "running", "its process was killed from outside; another one goes on with it")
                self.queue.append(job)
                return []
        return [ended(id, error, self.watch)]


_stop = {"asked": False}


def _serve(connection: Connection, parent: int, code: tuple[str, str] | None) -> None:
    """The main function of a runner's process."""
    idle = obey(parent)
    if code is not None:
        sys.path.insert(0, code[0])
        importlib.import_module(code[1])
    connection.send(("ready",))
    signal.signal(signal.SIGTERM, lambda signum, frame: _stop.update(asked=True))
    while True:
        try:
            spec, store, recompute, wait = connection.recv()
        except (EOFError, OSError):
            return
        idle.clear()
        try:
            options = {"recompute": recompute, "wait": wait}
            compute(spec, store, **options, cancelled=lambda: _stop["asked"] or gone(parent), watch=_sender(connection))
            message: Any = None
        except Exception as error:
            message = _sendable(error)
        finally:
            idle.set()
        with contextlib.suppress(OSError):
            connection.send(("ended", message))


def _sender(connection: Connection) -> Watch:
    """Sends news to the parent; of Progress only as much as a board can show."""
    last = -math.inf

    def watch(id: str, state: Any, news: Any) -> None:
        nonlocal last
        if news is None or isinstance(news, str) or time.monotonic() - last >= _NEWS_SECONDS:
            last = time.monotonic()
            with contextlib.suppress(OSError):
                connection.send(("news", id, state, news))

    return watch


def _sendable(error: Exception) -> Exception:
    """The error with its trace as a note, or its text if it cannot be sent."""
    if not isinstance(error, Interrupted):
        error.add_note("".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
