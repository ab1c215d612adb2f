"""Where runs are computed: the interface of an engine, and the simplest one.

An engine is given specs and reports when each has ended; the result of a run is in the store, under its address. It
never decides which runs are computed: see `execute`. `Processes` and `Dask` are the others.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol

from steppe.store import Computed, Store, address
from steppe.sweep._composite import is_composite

State = Literal["stored", "running", "waiting", "done", "failed"]
# Called with a run's address, its state, and news: a Progress, a message, or None.
Watch = Callable[[str, State, Any], None]


# Whoever sees this has lost nothing but time.
KILLED = (
    "a process that this command had started was killed from outside, probably because memory ran out. Finished runs "
    "are in the store, and the others have checkpoints: the same command goes on. Fewer --workers need less memory."
)


class Interrupted(Exception):  # noqa: N818 (asked for, not an error)
    """The run stopped on request. What it had done is in its checkpoint."""


class WorkerDiedError(RuntimeError):
    """A process that computed something was killed from outside. The message says what to do."""


class LimitError(RuntimeError):
    """A run was ended because it took more memory or time than allowed. The message says how much."""


class Ended(NamedTuple):
    """A run that an engine has finished with; `error` is None when its result is in the store.

    HeldError: another process computes the run, and `submit` was told not to wait for it.
    """

    id: str
    error: BaseException | None


class Engine(Protocol):
    """Computes runs, puts their results into the store it was made with, and calls `watch` on the way."""

    def submit(self, spec: Any, *, wait: bool) -> None:
        """Queue a run; return at once. If another process computes the run: `wait` for it, or end with HeldError."""

    def wait(self) -> list[Ended]:
        """Block until at least one submitted run has ended; return the runs that ended since the last call."""

    def cancel(self) -> None:
        """Ask all runs to save their checkpoints and stop. `wait` then reports them as Interrupted."""

    def close(self) -> None:
        """Free what the engine holds. What is still under way is ended."""


class InThisProcess:
    """One run after the other, in the process of the caller."""

    def __init__(self, store: Store, *, recompute: bool = False, watch: Watch):
        self.store, self.recompute, self.watch = store, recompute, watch
        self.queue: deque[tuple[Any, bool]] = deque()
        self.cancelled = threading.Event()

    def submit(self, spec: Any, *, wait: bool) -> None:
        self.queue.append((spec, wait))

    def wait(self) -> list[Ended]:
        (spec, wait), error = self.queue.popleft(), None
        try:
            options = {"recompute": self.recompute, "wait": wait}
            compute(spec, self.store, **options, cancelled=self.cancelled.is_set, watch=self.watch)
        except Exception as raised:
            error = raised
        return [ended(address(spec), error, self.watch)]

    def cancel(self) -> None:
        self.cancelled.set()

    def close(self) -> None:
        self.queue.clear()


def compute(
    spec: Any, store: Store, *, recompute: bool, wait: bool, cancelled: Callable[[], bool], watch: Watch
) -> None:
    """Compute one run into the store, here and now; read nothing if it is there already."""
    id = address(spec)

    def tell(news: Any) -> None:
        watch(id, "running", news)

    def work(checkpoint: Any) -> Computed:
        tell(None)
        if is_composite(spec):
            return spec.compose(store.get)
        return spec.compute(_Cancellable(checkpoint, cancelled, tell), tell)

    def waiting() -> None:
        if cancelled():
            raise Interrupted
        watch(id, "waiting", None)

    if cancelled():
        raise Interrupted
    if not recompute and (version := store.of_another_version(spec)) is not None:
        tell(f"the stored run is of steppe {version}, whose results may differ; it is computed again")
    store.compute(spec, work, recompute=recompute, waiting=waiting if wait else None)


def ended(id: str, error: BaseException | None, watch: Watch) -> Ended:
    """The end of a run, which `watch` hears of."""
    from steppe.store import HeldError

    if error is None:
        watch(id, "done", None)
    elif isinstance(error, Interrupted | HeldError):
        watch(id, "waiting", str(error) or None if isinstance(error, Interrupted) else None)
    else:
        watch(id, "failed", str(error) or type(error).__name__)
    return Ended(id, error)


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
