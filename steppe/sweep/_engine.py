"""Where runs are computed: the interface of an engine, and processes of this machine.

An engine is given specs and reports when each has ended; the result of a run is in the store, under its address. It
never decides which runs are computed: see `execute`. Another engine, of a cluster for example, implements `Engine`.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from steppe import check
from steppe.store import Computed, Store, address
from steppe.sweep._composite import is_composite

Item = TypeVar("Item")
Result = TypeVar("Result")
State = Literal["stored", "running", "waiting", "done", "failed"]
# Called with a run's address, its state, and news: a Progress, a message, or None.
Watch = Callable[[str, State, Any], None]

# Fresh processes: a forked one would inherit the threads of JAX in an unusable state.
SPAWN = multiprocessing.get_context("spawn")

# A worker looks this often whether its parent lives, and waits so long for the checkpoint of a run when it does not.
_PARENT_SECONDS, _CHECKPOINT_SECONDS = 1.0, 60.0
# So long the last news of a broken pool are waited for.
_NEWS_SECONDS = 1.0


class Interrupted(Exception):  # noqa: N818 (asked for, not an error)
    """The run stopped on request. What it had done is in its checkpoint."""


class WorkerDiedError(RuntimeError):
    """A process that computed something was killed from outside. The message says what to do."""


class Ended(NamedTuple):
    """A run that an engine has finished with; `error` is None when its result is in the store."""

    id: str
    error: BaseException | None


class Engine(Protocol):
    """Computes runs, puts their results into the store it was made with, and calls `watch` on the way."""

    def submit(self, spec: Any) -> None:
        """Queue a run. It returns at once."""

    def wait(self) -> list[Ended]:
        """Block until at least one submitted run has ended; return the runs that ended since the last call."""

    def cancel(self) -> None:
        """Ask all runs to save their checkpoints and stop. `wait` then reports them as Interrupted."""

    def close(self) -> None:
        """Free what the engine holds. No run is under way any more."""


class InThisProcess:
    """One run after the other, in the process of the caller."""

    def __init__(self, store: Store, *, recompute: bool = False, watch: Watch):
        self.store, self.recompute, self.watch = store, recompute, watch
        self.queue: deque[Any] = deque()
        self.cancelled = threading.Event()

    def submit(self, spec: Any) -> None:
        self.queue.append(spec)

    def wait(self) -> list[Ended]:
        spec, error = self.queue.popleft(), None
        id = address(spec)
        try:
            compute(spec, self.store, recompute=self.recompute, cancelled=self.cancelled.is_set, watch=self.watch)
        except Exception as raised:
            error = raised
        self.watch(*_news(id, error))
        return [Ended(id, error)]

    def cancel(self) -> None:
        self.cancelled.set()

    def close(self) -> None:
        self.queue.clear()


class Processes:
    """Processes of this machine, each with one thread, so that the cores share the runs fairly."""

    def __init__(self, store: Store, *, workers: int, recompute: bool = False, watch: Watch):
        self.store, self.recompute = store, recompute
        self.news, self.cancelled = SPAWN.Queue(), SPAWN.Event()
        self.under_way: dict[Future[None], str] = {}
        self.begun: set[str] = set()
        # A killed worker may hold the lock of the queue or of the event for ever: then nobody waits for either.
        self.died = False
        self.reader = threading.Thread(target=self._relay, args=(watch,), daemon=True)
        self.reader.start()
        self.pool = ProcessPoolExecutor(workers, SPAWN, _start_worker, (self.news, self.cancelled, os.getpid()))

    def submit(self, spec: Any) -> None:
        with _told_of_killed_workers():
            self.under_way[self.pool.submit(_work, spec, self.store, self.recompute)] = address(spec)

    def wait(self) -> list[Ended]:
        done = wait(self.under_way, return_when=FIRST_COMPLETED).done
        ended = []
        for future in done:
            id, error = self.under_way.pop(future), future.exception()
            if isinstance(error, BrokenProcessPool):
                error, self.died = WorkerDiedError(_KILLED), True
                _kill(self.pool)  # the pool asks the others to end; one that waits for a lock of the dead cannot
            ended.append(Ended(id, error))
            # Behind what the run itself has sent. A killed worker ends the queued runs too: no news of them.
            if id in self.begun or error is None:
                self.news.put(_news(id, error))
        return ended

    def cancel(self) -> None:
        if not self.died:
            self.cancelled.set()

    def close(self) -> None:
        kill = bool(self.under_way)
        _close(self.pool, kill=kill)
        if kill or self.died:
            self.news.cancel_join_thread()
        self.news.put(None)
        self.reader.join(_NEWS_SECONDS if kill or self.died else None)

    def _relay(self, watch: Watch) -> None:
        while (message := self.news.get()) is not None:
            self.begun.add(message[0])
            watch(*message)


def compute(spec: Any, store: Store, *, recompute: bool, cancelled: Callable[[], bool], watch: Watch) -> None:
    """Compute one run into the store, here and now; read nothing if it is there already."""
    id = address(spec)

    def tell(news: Any) -> None:
        watch(id, "running", news)

    def work(checkpoint: Any) -> Computed:
        if is_composite(spec):
            return spec.compose(store.get)
        return spec.compute(_Cancellable(checkpoint, cancelled, tell), tell)

    if cancelled():
        raise Interrupted
    tell(None)
    if not recompute and (version := store.of_another_version(spec)) is not None:
        tell(f"the stored run is of steppe {version}, whose results may differ; it is computed again")
    store.compute(spec, work, recompute=recompute, waiting=lambda: watch(id, "waiting", None))


def _news(id: str, error: BaseException | None) -> tuple[str, State, str | None]:
    """What `watch` is called with when a run has ended."""
    if error is None:
        return id, "done", None
    return id, "waiting" if isinstance(error, Interrupted) else "failed", str(error) or None


class _Cancellable:
    """A checkpoint that is due at once when the run is cancelled, and ends the run once it is saved.

    It tells if a checkpoint is there that cannot be used.
    """

    def __init__(self, inner: Any, cancelled: Callable[[], bool], tell: Callable[[str], None]):
        self.inner, self.cancelled, self.tell = inner, cancelled, tell

    def load(self) -> Any:
        arrays = self.inner.load()
        if self.inner.ignored:
            self.tell(self.inner.ignored)
        return arrays

    def due(self) -> bool:
        return self.cancelled() or self.inner.due()

    def save(self, arrays: Any) -> None:
        self.inner.save(arrays)
        if self.cancelled():
            raise Interrupted


_worker: dict[str, Any] = {}


def _start_worker(news: Any, cancelled: Any, parent: int) -> None:
    _worker.update(news=news, cancelled=cancelled, stopped=False)
    _start_process(parent)
    signal.signal(signal.SIGTERM, lambda signum, frame: _worker.update(stopped=True))


def _start_process(parent: int) -> None:
    """Ctrl-C reaches the parent, which cancels; a worker ignores it. A worker does not outlive its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _worker.update(parent=parent, idle=threading.Event())
    _worker["idle"].set()
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    """A killed parent cannot end its workers. Each ends itself once the run under way has saved its checkpoint."""
    while os.getppid() == _worker["parent"]:
        time.sleep(_PARENT_SECONDS)
    _worker["idle"].wait(_CHECKPOINT_SECONDS)
    os._exit(1)


def _work(spec: Any, store: Store, recompute: bool) -> None:
    def cancelled() -> bool:
        return _worker["stopped"] or _worker["cancelled"].is_set() or os.getppid() != _worker["parent"]

    def watch(*message: Any) -> None:
        _worker["news"].put(message)

    _worker["idle"].clear()
    try:
        compute(spec, store, recompute=recompute, cancelled=cancelled, watch=watch)
    finally:
        _worker["idle"].set()


def number_of(workers: int | None) -> int:
    """How many processes to use; as many as there are cores if nobody says."""
    if workers is None:
        return os.cpu_count() or 1
    return check.integer("workers", workers, minimum=1, remedy="Pass the number of processes, or None for all cores.")


def map_processes(
    function: Callable[[Item], Result], items: Sequence[Item], *, workers: int | None = None
) -> Iterator[Result]:
    """function(item) of every item on all cores, in their order, as soon as each is there.

    The function and the items are pickled.

    >>> list(map_processes(abs, [-1, 2], workers=1))
    [1, 2]
    """
    if not callable(function):
        check.refuse("function", "a function of an item", function, "Pass one of a module: it is pickled.")
    return _mapped(function, items, min(number_of(workers), len(items)))


def _mapped(function: Callable[[Item], Result], items: Sequence[Item], workers: int) -> Iterator[Result]:
    if workers <= 1:
        yield from map(function, items)
        return
    with one_thread_each():
        pool = ProcessPoolExecutor(workers, SPAWN, _start_process, (os.getpid(),))
        whole = False
        try:
            with _told_of_killed_workers():
                yield from pool.map(function, items)
            whole = True
        finally:
            _close(pool, kill=not whole)


# Whoever sees this has lost nothing but time.
_KILLED = (
    "a process that this command had started was killed from outside, probably because memory ran out. Finished runs "
    "are in the store, and the others have checkpoints: the same command goes on. Fewer --workers need less memory."
)


@contextmanager
def _told_of_killed_workers() -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool as error:
        raise WorkerDiedError(_KILLED) from error


def _close(pool: ProcessPoolExecutor, *, kill: bool) -> None:
    """Wait for the workers, or kill them: then nobody waits for what they compute."""
    if kill:
        _kill(pool)
    pool.shutdown(cancel_futures=True)


def _kill(pool: ProcessPoolExecutor) -> None:
    for process in list((pool._processes or {}).values()):
        process.kill()


@contextmanager
def one_thread_each() -> Iterator[None]:
    """New processes get one thread, set before JAX starts: cores share the runs, and sums keep their order."""
    wanted = {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    }
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
