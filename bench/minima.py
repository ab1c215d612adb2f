"""Gradient descent on mulayoff2021's net (k 80, n 10, float64) for many step sizes: ours against eager PyTorch."""

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from steppe.dynamics import minima
from steppe.networks import OneHidden

from . import Ratio
from ._timing import best_times

WIDTH, N, RUNS = 80, 10, 32
STEPS, TORCH_STEPS, TORCH_RUNS = 20_000, 150, 2


def measure() -> list[Ratio]:
    """Microseconds for a step of one run, when all step sizes run together: from the start, and late in training.

    PyTorch runs one step size after another, as its users do. Late in training many neurons sit on training points and
    switch on or off at every step. Then our kernel takes up to twice the time.
    """
    rng = np.random.default_rng(0)
    x, y = np.linspace(-2, 2, N), 0.5 * rng.normal(size=N)
    start = OneHidden().init(1, WIDTH, rng)
    rates = np.geomspace(0.01, 0.02, RUNS)
    cores = os.cpu_count() or 1
    late = minima(x, y, start, [0.015], loss=0.0, max_steps=50_000).params(0)
    contenders: dict[str, tuple[Callable[[], object], int]] = {
        "all cores": (_ours(x, y, start, rates, cores), RUNS * STEPS),
        "one core": (_ours(x, y, start, rates, 1), RUNS * STEPS),
        "late": (_ours(x, y, late, rates, cores), RUNS * STEPS),
    }
    if find_spec("torch") is not None:
        contenders["torch"] = (_torch(x, y, start, rates[:TORCH_RUNS]), TORCH_RUNS * TORCH_STEPS)
    best = {name: 1e6 * seconds for name, seconds in best_times(contenders).items()}
    rate = 1e6 / best["all cores"]
    subject = "GD step of one run"

    def ratio(ours: str, peer: str, theirs: float, note: str) -> Ratio:
        return Ratio(f"{subject}, {ours}", peer, best[ours], theirs, "µs", theirs / best[ours], note)

    results = [ratio("all cores", "ours, one core", best["one core"], f"{rate:,.0f} run-steps a second")]
    if "torch" in best:
        peer = "eager PyTorch, one thread"
        results = [
            ratio("all cores", peer, best["torch"], f"{rate:,.0f} run-steps a second, target ≥ 100"),
            ratio("one core", peer, best["torch"], "target ≥ 100"),
            ratio("late", peer, best["torch"], "target ≥ 100"),
            *results,
        ]
    return results


def _ours(x: Any, y: Any, start: Any, rates: Any, threads: int) -> Callable[[], object]:
    def work() -> None:
        done = minima(x, y, start, rates, loss=0.0, max_steps=STEPS, threads=threads)
        assert (done.steps == STEPS).all()  # a run that ends early would look fast

    return work


def _torch(x: Any, y: Any, start: Any, rates: Any) -> Callable[[], object]:
    """The same steps as PyTorch users write them: a module, a loss, SGD without momentum."""
    import torch

    inputs, targets = torch.tensor(x)[:, None], torch.tensor(y)

    def one(lr: float) -> None:
        layers = torch.nn.Linear(1, WIDTH, dtype=torch.float64), torch.nn.Linear(WIDTH, 1, dtype=torch.float64)
        model = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1])
        with torch.no_grad():
            for parameter, name in zip(model.parameters(), ("W1", "b1", "W2", "b2"), strict=True):
                parameter.copy_(torch.tensor(np.asarray(start[name])).reshape(parameter.shape))
        optimiser = torch.optim.SGD(model.parameters(), lr=lr)
        for _ in range(TORCH_STEPS):
            optimiser.zero_grad()
            loss = 0.5 * torch.mean((model(inputs)[:, 0] - targets) ** 2)
            if loss.item() <= 0.0:
                break
            loss.backward()
            optimiser.step()

    def steps() -> None:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        for lr in rates:
            one(float(lr))
        torch.set_num_threads(threads)

    return steps
