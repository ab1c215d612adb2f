"""A function of many items on all cores, and the environment in which such processes share the cores fairly."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

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
