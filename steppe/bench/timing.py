"""Times that can be compared: every contender in turn, several rounds, the best of each."""

import time
from collections.abc import Callable, Mapping


def best_times(contenders: Mapping[str, tuple[Callable[[], object], int]], *, rounds: int = 5) -> dict[str, float]:
    """Seconds for one unit of work of each contender (function, units of work in a call).

    The rounds interleave the contenders, so that a noisy moment of the machine hits all of them; the best round is
    the one least disturbed. The first call of each, which compiles, is not counted.
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
