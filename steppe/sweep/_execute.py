"""Many runs, each computed once: read from the store what is there, compute the rest, resumable."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from steppe.store import Entry, Store, address
from steppe.sweep._composite import is_composite
from steppe.sweep._engine import Engine, Interrupted, InThisProcess, Processes, Watch, number_of, one_thread_each


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
    Interrupted. With `recompute`, stored entries are ignored until they are recomputed.
    """
    pending = _Pending(specs, store, recompute=recompute)
    first, workers = pending.ready(), number_of(workers)
    for id in pending.wanted.keys() & pending.entries.keys():
        watch(id, "stored", None)
    # After the first part of a composite there may be many.
    several = len(first) > 1 or not first.keys() <= pending.wanted.keys()
    with one_thread_each(), _on_interrupt() as interrupted:
        if first and engine is not None:
            _drive(engine(), pending, interrupted)
        elif workers > 1 and several:
            processes = Processes(store, workers=workers, recompute=recompute, watch=watch)
            _drive(processes, pending, interrupted)
        elif first:
            _drive(InThisProcess(store, recompute=recompute, watch=watch), pending, interrupted)
    return [pending.entries[address(spec)] for spec in specs]


def _drive(engine: Engine, pending: "_Pending", interrupted: threading.Event) -> None:
    """Submit whatever is ready until nothing is, or a run fails: then the others are cancelled and the error raised."""
    failure: BaseException | None = None
    under_way: set[str] = set()
    ended = threading.Event()
    threading.Thread(target=_cancel_when, args=(interrupted, ended, engine), daemon=True).start()
    try:
        while True:
            try:
                ready = {} if failure else pending.ready()
            except Exception as damaged:
                ready, failure = {}, damaged
                engine.cancel()
            for id, spec in ready.items():
                if id not in under_way:
                    under_way.add(id)
                    engine.submit(spec)
            if not under_way:
                break
            for id, error in engine.wait():
                under_way.discard(id)
                if error is None:
                    pending.computed(id)
                elif failure is None or isinstance(failure, Interrupted):
                    failure = error
                    engine.cancel()
    finally:
        ended.set()
        engine.close()
    if failure is not None:
        raise failure


def _cancel_when(interrupted: threading.Event, ended: threading.Event, engine: Engine) -> None:
    while not ended.is_set():
        if interrupted.wait(0.2):
            engine.cancel()
            return


class _Pending:
    """Which of the wanted runs, or of their parts, can be computed now."""

    def __init__(self, specs: Sequence[Any], store: Store, *, recompute: bool):
        self.wanted = {address(spec): spec for spec in specs}
        self.store, self.recompute = store, recompute
        self.entries: dict[str, Entry] = {}
        self.recomputed: set[str] = set()

    def ready(self) -> dict[str, Any]:
        """Specs by their addresses: wanted runs that are not in the store, or missing parts of them."""
        found: dict[str, Any] = {}
        for id, spec in self.wanted.items():
            if self.get(spec) is None:
                parts = spec.missing(self.get) if is_composite(spec) else []
                found |= {address(part): part for part in parts} or {id: spec}
        return found

    def get(self, spec: Any) -> Entry | None:
        """The finished run of a spec, or None; each is read once."""
        id = address(spec)
        if id not in self.entries and (id in self.recomputed or not self.recompute):
            entry = self.store.get(spec)
            if entry is None:
                return None
            self.entries[id] = entry
        return self.entries.get(id)

    def computed(self, id: str) -> None:
        self.recomputed.add(id)


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
