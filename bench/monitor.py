"""A training loop with `steppe.torch.Monitor` against the bare loop, and a step of SAM against two plain steps.

Two equal networks train side by side, some steps each in turn, so that a busy moment of the machine slows both down.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import cycle
from typing import Any

from . import Ratio

LR, BATCH, IN_TURN = 0.02, 256, 25
# Long enough that an eigenvalue is affordable, and some more.
STEPS = {"MLP": 3_000, "CNN": 1_000}
OVERHEAD = 0.1


def measure() -> list[Ratio]:
    """Seconds a step: forward, backward, optimiser, and what the monitor takes, its construction too."""
    if not has_torch():
        return []
    with _one_thread():
        return [row for name, steps in STEPS.items() for row in _rows(name, steps)]


def has_torch() -> bool:
    # Only a part of PyTorch tells: a folder named torch is a package as well.
    return find_spec("torch") is not None and find_spec("torch.autograd") is not None


def _rows(name: str, steps: int) -> list[Ratio]:
    import torch

    from steppe.torch import SAM, Monitor

    batches = _batches()
    bare, watched, flat = (_network(name) for _ in range(3))
    plain, moved = (torch.optim.SGD(m.parameters(), lr=LR, momentum=0.9) for m in (bare, watched))
    sam = SAM(torch.optim.SGD(flat.parameters(), lr=LR, momentum=0.9), 0.05)
    started = time.perf_counter()
    seconds = {"bare": 0.0}
    # Its clock stands still while the other network trains.
    watch = lambda: time.perf_counter() - seconds["bare"]  # noqa: E731
    monitor = Monitor(
        watched, moved, batches[0], torch.nn.functional.cross_entropy, overhead=OVERHEAD, clock=watch
    )  # fmt: skip
    seconds |= {"monitor": time.perf_counter() - started, "sam": 0.0, "plain": 0.0}
    _in_turn(seconds, steps, {"bare": _loop(bare, plain, batches), "monitor": _loop(watched, moved, batches)})
    short = steps // 10
    _in_turn(seconds, short, {"sam": _loop(flat, sam, batches), "plain": _loop(bare, plain, batches)})
    values = [row for row in monitor.rows if math.isfinite(row["sharpness"])]
    products = sum(row["matvecs"] for row in values[1:]) / max(1, len(values) - 1)
    note = (
        f"{len(values)} eigenvalues of {products:.1f} products, {len(monitor.rows)} edges; by its own clock "
        f"{monitor.overhead:.1%}; target ≥ {1 / (1 + OVERHEAD):.2f}"
    )
    ours, theirs = (1e3 * seconds[contender] / steps for contender in ("monitor", "bare"))
    sam_ms, two_ms = 1e3 * seconds["sam"] / short, 2e3 * seconds["plain"] / short
    return [
        Ratio(f"step with the monitor, {name}", "bare loop", ours, theirs, "ms", theirs / ours, note),
        Ratio(f"step of SAM, {name}", "two steps of SGD", sam_ms, two_ms, "ms", two_ms / sam_ms, "target ≥ 0.9"),
    ]


def _in_turn(seconds: dict[str, float], steps: int, loops: dict[str, Callable[[], object]]) -> None:
    """Adds the seconds of so many steps of each loop."""
    for _ in range(steps // IN_TURN):
        for contender, loop in loops.items():
            seconds[contender] += _timed(loop, IN_TURN)


def _loop(model: Any, optimizer: Any, batches: Any) -> Callable[[], object]:
    """One step of training at every call."""
    import torch

    order = cycle(batches)

    def step() -> object:
        x, y = next(order)

        def closure() -> Any:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            return loss

        return optimizer.step(closure)

    return step


def _timed(step: Callable[[], object], count: int) -> float:
    started = time.perf_counter()
    for _ in range(count):
        step()
    return time.perf_counter() - started


def _batches() -> list[Any]:
    """Images of three channels with the label of a random linear teacher."""
    import torch

    generator = torch.Generator().manual_seed(0)
    teacher = torch.randn(3 * 12 * 12, 10, generator=generator)
    images = [torch.randn(BATCH, 3, 12, 12, generator=generator) for _ in range(4)]
    return [(x, (x.flatten(1) @ teacher).argmax(1)) for x in images]


def _network(name: str) -> Any:
    import torch
    from torch import nn

    torch.manual_seed(1)
    networks = {
        "MLP": lambda: nn.Sequential(
            nn.Flatten(), nn.Linear(432, 200), nn.Tanh(), nn.Linear(200, 200), nn.Tanh(), nn.Linear(200, 10)
        ),
        "CNN": lambda: nn.Sequential(
            nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 16, 3), nn.ReLU(),
            nn.Flatten(), nn.Linear(144, 10),
        ),
    }  # fmt: skip
    return networks[name]()


@contextmanager
def _one_thread() -> Iterator[None]:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
