"""Many runs, each computed once, on all cores: read from the store what is there, compute the rest, resumable."""

import multiprocessing
import os
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, TypeVar

from steppe.store import Computed, Entry, Store, address

if TYPE_CHECKING:
    from steppe.store import Computed, Entry

Get = Callable[[Any], "Entry | None"]


class Assembled(ABC):
    """A spec made of parts, which are specs: all cores work on it, a kill loses no finished part, others share them.

    `get(spec)` is the finished run of a spec, or None.
    """

    @property
    @abstractmethod
    def apart(self) -> bool:
        """Whether its parts are worth processes of their own; else its `compute` makes everything."""

    @abstractmethod
    def missing(self, get: Get) -> list[Any]:
        """The parts that can be computed now and are not there; none when it can be put together."""

    @abstractmethod
    def assemble(self, get: Get) -> "Computed":
        """What the parts come to; all are there."""


def apart(spec: Any) -> TypeGuard[Assembled]:
    return isinstance(spec, Assembled) and spec.apart


# Which of many runs, or of their parts, can be computed now.


class Due:
    """The runs of `specs` that can be computed now: those that are not there, or parts of them."""

    def __init__(self, specs: Sequence[Any], store: Store, *, recompute: bool):
        self.wanted = {address(spec): spec for spec in specs}
        self.store, self.recompute = store, recompute
        self.entries: dict[str, Entry] = {}
        self.fresh: set[str] = set()

    def __call__(self) -> dict[str, Any]:
        """By their addresses; none when all are there."""
        found: dict[str, Any] = {}
        for id, spec in self.wanted.items():
            if self.get(spec) is None:
                parts = spec.missing(self.get) if apart(spec) else []
                found |= {address(part): part for part in parts} or {id: spec}
        return found

    def get(self, spec: Any) -> Entry | None:
        """Read once. What is to be computed again is not there until it has been."""
        id = address(spec)
        if id not in self.entries and (id in self.fresh or not self.recompute):
            entry = self.store.get(spec)
            if entry is None:
                return None
            self.entries[id] = entry
        return self.entries.get(id)

    def made(self, id: str) -> None:
        self.fresh.add(id)


# A function of many items on all cores, and the environment in which such processes share the cores fairly.

Item = TypeVar("Item")
Result = TypeVar("Result")

# Fresh processes: a forked one would inherit the threads of JAX in an unusable state.
CONTEXT = multiprocessing.get_context("spawn")


def each(function: Callable[[Item], Result], items: Sequence[Item], *, workers: int | None = None) -> Iterator[Result]:
    """function(item) of every item, in their order, as soon as each is there. Function and items must be importable.

    >>> list(each(abs, [-1, 2], workers=1))
    [1, 2]
    """
    workers = min(workers or os.cpu_count() or 1, len(items))
    if workers <= 1:
        yield from map(function, items)
        return
    with single_threaded(), ProcessPoolExecutor(workers, CONTEXT) as pool:
        yield from pool.map(function, items)


@contextmanager
def single_threaded() -> Iterator[None]:
    """One thread a process, set before JAX starts: the cores share the runs instead, and sums keep their order."""
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


# Many runs, each computed once, on all cores: read from the store what is there, compute the rest, resumable.

State = Literal["running", "waiting", "done", "failed"]
Watch = Callable[[str, State, Any], None]


class Interrupted(Exception):  # noqa: N818 (asked for, not an error)
    """Stopped on request; what was under way has been checkpointed."""


class _Stoppable:
    """A checkpoint that is due at once when a stop is asked for, and ends the run once it is saved."""

    def __init__(self, inner: Any, stop: Callable[[], bool]):
        self.inner, self.stop = inner, stop

    def load(self) -> Any:
        return self.inner.load()

    def due(self) -> bool:
        return self.stop() or self.inner.due()

    def save(self, arrays: Any) -> None:
        self.inner.save(arrays)
        if self.stop():
            raise Interrupted


def execute(
    specs: Sequence[Any],
    store: Store,
    *,
    workers: int | None = None,
    recompute: bool = False,
    watch: Watch = lambda id, state, news: None,
) -> list[Entry]:
    """The runs of `specs`, in their order. `watch(id, state, news)` hears of progress (news: a Progress, or an error).

    One process for each core, or as many as `workers` says; Ctrl-C checkpoints what is under way and raises
    Interrupted. The results do not depend on the number of workers.
    """
    due = Due(specs, store, recompute=recompute)
    todo, workers = due(), workers or os.cpu_count() or 1
    # After the first part of a run there may be many.
    several = len(todo) > 1 or not todo.keys() <= due.wanted.keys()
    with single_threaded(), _interruptible() as stop:
        if workers > 1 and several:
            _in_parallel(due, store, recompute, workers, stop, watch)
        while todo := due():
            id, spec = next(iter(todo.items()))
            _compute(spec, store, recompute, stop.is_set, watch)
            due.made(id)
            watch(id, "done", None)
    return [due.entries[address(spec)] for spec in specs]


def _compute(spec: Any, store: Store, recompute: bool, stop: Callable[[], bool], watch: Watch) -> None:
    id = address(spec)

    def work(checkpoint: Any) -> Computed:
        if apart(spec):
            return spec.assemble(store.get)
        return spec.compute(_Stoppable(checkpoint, stop), lambda news: watch(id, "running", news))

    if stop():
        raise Interrupted
    watch(id, "running", None)
    store.compute(spec, work, recompute=recompute, waiting=lambda: watch(id, "waiting", None))


def _in_parallel(due: Due, store: Store, recompute: bool, workers: int, stop: threading.Event, watch: Watch) -> None:
    """Until nothing is due, or something failed: then what is under way is asked to stop."""
    news, shared_stop = CONTEXT.Queue(), CONTEXT.Event()
    reader = threading.Thread(target=_relay, args=(news, watch), daemon=True)
    reader.start()
    failure: BaseException | None = None
    under_way: dict[Future[None], str] = {}
    with ProcessPoolExecutor(workers, CONTEXT, _start_worker, (news, shared_stop, os.getpid())) as pool:
        threading.Thread(target=_forward, args=(stop, shared_stop), daemon=True).start()
        while True:
            try:
                ready = due() if failure is None else {}
            except Exception as damaged:
                failure, ready = damaged, {}
                shared_stop.set()
            busy = set(under_way.values())
            under_way |= {pool.submit(_work, s, store, recompute): id for id, s in ready.items() if id not in busy}
            if not under_way:
                break
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                id, error = under_way.pop(future), future.exception()
                if error is None:
                    due.made(id)
                    news.put((id, "done", None))
                elif failure is None or isinstance(failure, Interrupted):
                    failure = error
                    shared_stop.set()
                    if not isinstance(error, Interrupted):
                        news.put((id, "failed", str(error)))
    stop.set()
    news.put(None)
    reader.join()
    if failure is not None:
        raise failure


def _relay(news: Any, watch: Watch) -> None:
    while (message := news.get()) is not None:
        watch(*message)


def _forward(stop: threading.Event, shared_stop: Any) -> None:
    stop.wait()
    shared_stop.set()


_worker: dict[str, Any] = {}


def _start_worker(news: Any, stop: Any, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which asks us to stop
    _worker.update(news=news, stop=stop, parent=parent)


def _work(spec: Any, store: Store, recompute: bool) -> None:
    def stop() -> bool:
        # A parent that was killed cannot ask: then the run stops as if it had.
        return _worker["stop"].is_set() or os.getppid() != _worker["parent"]

    _compute(spec, store, recompute, stop, lambda *message: _worker["news"].put(message))


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """The first Ctrl-C asks for a clean stop; a second one ends the process as usual."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def ask(signum: int, frame: Any) -> None:
        stop.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
