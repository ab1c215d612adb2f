"""Comparable times: all contenders in turn, in several rounds."""

import time
from collections.abc import Callable, Mapping


def best_times(contenders: Mapping[str, tuple[Callable[[], object], int]], *, rounds: int = 5) -> dict[str, float]:
    """Seconds for one unit of work of each contender, which is (function, units of work in a call).

    Each round calls every contender once, so that a busy moment of the machine slows all of them down. The best round
    counts: it is the least disturbed. The first call of each contender compiles and is not counted.
    """
    for work, _ in contenders.values():
        work()
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, (work, units) in contenders.items():
            started = time.perf_counter()
            work()
            best[name] = min(best[name], (time.perf_counter() - started) / units)
    return best


def best_time(work: Callable[[], object], *, rounds: int = 5) -> float:
    """Seconds for one call, the best of several; the first one is not counted."""
    return best_times({"work": (work, 1)}, rounds=rounds)["work"]
