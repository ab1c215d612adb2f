"""Many runs, each computed once: read from the store what is there, compute the rest, resumable."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from steppe.store import Entry, HeldError, Store, StoreError, address
from steppe.sweep._composite import is_composite
from steppe.sweep._engine import Engine, Interrupted, InThisProcess, Watch
from steppe.sweep._processes import Processes
from steppe.sweep._spawn import number_of, one_thread_each


class PartFailedError(RuntimeError):
    """A run is made of runs of which one has failed."""


def execute(
    specs: Sequence[Any],
    store: Store,
    *,
    workers: int | None = None,
    recompute: bool = False,
    watch: Watch = lambda id, state, news: None,
    engine: Callable[[], Engine] | None = None,
) -> list[Entry]:
    """The runs of `specs`, in their order. `watch(id, state, news)` hears of stored runs, of progress and of errors.

    The engine is processes of this machine, one for each core or as many as `workers` says; `engine` makes another
    one. The results do not depend on the engine or on `workers`. Ctrl-C or SIGTERM saves checkpoints and raises
    Interrupted. With `recompute`, stored entries are ignored until they are recomputed. The first run that fails
    cancels the others, and its error is raised.
    """
    pending, workers = Pending(specs, store, recompute=recompute), number_of(workers)
    for id in pending.entries:
        watch(id, "stored", None)
    # After the first part of a composite there may be many.
    several = len(pending.plain) + sum(2 if c.missing(pending.get) else 1 for c in pending.composites.values()) > 1

    def local() -> Engine:
        if workers > 1 and several:
            return Processes(store, workers=workers, recompute=recompute, watch=watch)
        return InThisProcess(store, recompute=recompute, watch=watch)

    drive(engine or local, pending)
    return [pending.entries[address(spec)] for spec in specs]


def drive(make: Callable[[], Engine], pending: "Pending", *, to_the_end: bool = False) -> None:
    """Submit whatever is ready until nothing is. A run that fails cancels the others, and its error is raised.

    `to_the_end`: the others go on, and `pending.failures` keeps the errors. Only an interruption, and a store that
    cannot be read or written, end everything.
    """
    if not pending.plain and not pending.composites:
        return
    with one_thread_each(), _on_interrupt() as interrupted:
        _Drive(make(), pending, to_the_end).run(interrupted)


class _Drive:
    def __init__(self, engine: Engine, pending: "Pending", to_the_end: bool):
        self.engine, self.pending, self.to_the_end = engine, pending, to_the_end
        self.error: BaseException | None = None
        self.under_way: dict[str, Any] = {}
        self.held: dict[str, Any] = {}

    def run(self, interrupted: threading.Event) -> None:
        over = threading.Event()
        threading.Thread(target=_cancel_when, args=(interrupted, over, self.engine), daemon=True).start()
        try:
            while self._submitted():
                for id, error in self.engine.wait():
                    self._ended(id, self.under_way.pop(id), error)
        finally:
            over.set()
            self.engine.close()
        if self.error is not None:
            raise self.error

    def _submitted(self) -> bool:
        """Submit what can be computed now; whether anything is under way."""
        try:
            ready = {} if self.error else self.pending.ready()
        except Exception as damaged:
            ready = {}
            self._stop(damaged)
        for id, spec in ready.items():
            if id not in self.under_way and id not in self.held:
                self.under_way[id] = spec
                self.engine.submit(spec, wait=False)
        if not self.under_way and not self.error:
            # Only runs that others compute are left: wait for those, and take over where one dies.
            self.under_way, self.held = self.held, {}
            for spec in self.under_way.values():
                self.engine.submit(spec, wait=True)
        return bool(self.under_way)

    def _ended(self, id: str, spec: Any, error: BaseException | None) -> None:
        try:
            if error is None:
                self.pending.computed(id)
        except Exception as damaged:
            error = damaged
        if isinstance(error, HeldError):
            self.held[id] = spec
        elif error is not None and self.to_the_end and not isinstance(error, Interrupted | StoreError | OSError):
            self.pending.failures[id] = error
            self.pending.store.note_failure(id, f"{type(error).__name__}: {error}")
        elif error is not None:
            self._stop(error)

    def _stop(self, error: BaseException) -> None:
        if self.error is None or isinstance(self.error, Interrupted):
            self.error = error
            self.engine.cancel()


def _cancel_when(interrupted: threading.Event, over: threading.Event, engine: Engine) -> None:
    while not over.is_set():
        if interrupted.wait(0.2):
            engine.cancel()
            return


class Pending:
    """Which of the wanted runs, or of their parts, can be computed now."""

    def __init__(self, specs: Sequence[Any], store: Store, *, recompute: bool = False):
        self.wanted = {address(spec): spec for spec in specs}
        self.store, self.recompute = store, recompute
        self.entries: dict[str, Entry] = {}
        self.recomputed: set[str] = set()
        self.failures: dict[str, BaseException] = {}
        missing = {id: spec for id, spec in self.wanted.items() if self._entry(id, spec) is None}
        self.composites = {id: spec for id, spec in missing.items() if is_composite(spec)}
        self.plain = {id: spec for id, spec in missing.items() if id not in self.composites}

    def ready(self) -> dict[str, Any]:
        """Specs by their addresses: wanted runs, each once, and the missing parts of composites, until they are there.

        A composite of which a part has failed fails with it.
        """
        found, self.plain = self.plain, {}
        for id, spec in list(self.composites.items()):
            if id in self.failures or self._entry(id, spec) is not None:
                del self.composites[id]
                continue
            parts = {address(part): part for part in spec.missing(self.get)}
            lost = next((part for part in parts if part in self.failures), None)
            if lost is None:
                found = found | (parts or {id: spec})
            else:
                del self.composites[id]
                self.failures[id] = PartFailedError(f"its part {lost} failed: {self.failures[lost]}")
        return found

    def get(self, spec: Any) -> Entry | None:
        """The finished run of a spec, or None; each is read once."""
        return self._entry(address(spec), spec)

    def computed(self, id: str) -> None:
        self.recomputed.add(id)
        if id in self.wanted:
            self._entry(id, self.wanted[id])

    def _entry(self, id: str, spec: Any) -> Entry | None:
        if id not in self.entries and (id in self.recomputed or not self.recompute):
            entry = self.store.get(spec)
            if entry is None:
                return None
            self.entries[id] = entry
        return self.entries.get(id)


@contextmanager
def _on_interrupt() -> Iterator[threading.Event]:
    """Set by the first Ctrl-C or SIGTERM; a second one ends the process as usual."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return

    def ask(signum: int, frame: Any) -> None:
        interrupted.set()
        signal.signal(signum, before[signum])

    before: dict[int, Any] = {signum: signal.signal(signum, ask) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupted
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
