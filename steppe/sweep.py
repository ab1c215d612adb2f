"""Many runs, each computed once, on all cores: read from the store what is there, compute the rest, resumable."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any, Literal

from steppe.parallel import CONTEXT, single_threaded
from steppe.store import Computed, Entry, Store, address

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
    todo = {address(spec): spec for spec in specs if recompute or store.get(spec) is None}
    workers = min(workers or os.cpu_count() or 1, len(todo))
    with single_threaded(), _interruptible() as stop:
        if workers <= 1:
            for id, spec in todo.items():
                _compute(spec, store, recompute, stop.is_set, watch)
                watch(id, "done", None)
        else:
            _in_parallel(todo, store, recompute, workers, stop, watch)
    return [store.open(address(spec)) for spec in specs]


def _compute(spec: Any, store: Store, recompute: bool, stop: Callable[[], bool], watch: Watch) -> None:
    id = address(spec)

    def work(checkpoint: Any) -> Computed:
        return spec.compute(_Stoppable(checkpoint, stop), lambda news: watch(id, "running", news))

    if stop():
        raise Interrupted
    watch(id, "running", None)
    store.compute(spec, work, recompute=recompute, waiting=lambda: watch(id, "waiting", None))


def _in_parallel(
    todo: dict[str, Any], store: Store, recompute: bool, workers: int, stop: threading.Event, watch: Watch
) -> None:
    news, shared_stop = CONTEXT.Queue(), CONTEXT.Event()
    reader = threading.Thread(target=_relay, args=(news, watch), daemon=True)
    reader.start()
    failure: BaseException | None = None
    with ProcessPoolExecutor(workers, CONTEXT, _start_worker, (news, shared_stop, os.getpid())) as pool:
        futures: dict[Future[None], str] = {pool.submit(_work, spec, store, recompute): id for id, spec in todo.items()}
        watcher = threading.Thread(target=_forward, args=(stop, shared_stop), daemon=True)
        watcher.start()
        for future in as_completed(futures):
            error = future.exception()
            if error is None:
                news.put((futures[future], "done", None))
            elif failure is None or isinstance(failure, Interrupted):
                failure = error
                shared_stop.set()
                if not isinstance(error, Interrupted):
                    news.put((futures[future], "failed", str(error)))
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
