"""Fresh processes with one thread each, and a map over them."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeVar

from steppe import check
from steppe.sweep._engine import KILLED, WorkerDiedError

Item = TypeVar("Item")
Result = TypeVar("Result")

# Fresh processes: a forked one would inherit the threads of JAX in an unusable state.
SPAWN = multiprocessing.get_context("spawn")

# A process looks this often whether its parent lives, and waits so long for the checkpoint of a run when it does not.
_PARENT_SECONDS, _CHECKPOINT_SECONDS = 1.0, 60.0


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


def number_of(workers: int | None) -> int:
    """How many processes to use; as many as there are cores if nobody says."""
    if workers is None:
        return os.cpu_count() or 1
    return check.integer("workers", workers, minimum=1, remedy="Pass the number of processes, or None for all cores.")


def _mapped(function: Callable[[Item], Result], items: Sequence[Item], workers: int) -> Iterator[Result]:
    if workers <= 1:
        yield from map(function, items)
        return
    with one_thread_each():
        pool = ProcessPoolExecutor(workers, SPAWN, obey, (os.getpid(),))
        whole = False
        try:
            yield from pool.map(function, items)
            whole = True
        except BrokenProcessPool as error:
            raise WorkerDiedError(KILLED) from error
        finally:
            if not whole:  # nobody waits for what the others compute
                for process in list((pool._processes or {}).values()):
                    process.kill()
            pool.shutdown(cancel_futures=True)


@contextmanager
def one_thread_each() -> Iterator[None]:
    """New processes get one thread, set before JAX starts: cores share the runs, and sums keep their order."""
    wanted = {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    }
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def obey(parent: int) -> threading.Event:
    """Ctrl-C reaches the parent, which cancels; this process ignores it. It does not outlive its parent.

    Clear the event while something computes that wants to save a checkpoint first.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    idle = threading.Event()
    idle.set()
    threading.Thread(target=_exit_with, args=(parent, idle), daemon=True).start()
    return idle


def gone(parent: int) -> bool:
    return os.getppid() != parent


def _exit_with(parent: int, idle: threading.Event) -> None:
    """A killed parent cannot end its workers. Each ends itself once the run under way has saved its checkpoint."""
    while not gone(parent):
        time.sleep(_PARENT_SECONDS)
    idle.wait(_CHECKPOINT_SECONDS)
    os._exit(1)
