"""Gradient flow to a time: our RKC2 against the classical method at the step 1/λ_max, in gradients and seconds.

FCNs of PyTorch's default initialisation (half_mse, float32) on scikit-learn's digits, and on the first 5,000 images of
MNIST where its files are. Both ends are compared with that of RKC2 at a finer tolerance. The classical method's step is
bounded by stability, not by its error: it cannot trade its smaller error for fewer gradients.
"""

import gzip
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import losses, measures, until
from steppe.bench import Ratio
from steppe.dynamics import Flow, Run, run
from steppe.problems import Problem

RTOL, REFERENCE_RTOL = 3e-3, 3e-4
DIGITS, DIGITS_WIDTH, DIGITS_TIME = 500, 50, 100.0
# The ratio grows with the time; this short one on MNIST keeps the benchmark quick.
MNIST, MNIST_WIDTH, MNIST_TIME = 5_000, 200, 1.0


@dataclass(frozen=True)
class Contest:
    subject: str
    problem: Problem
    time: float


@dataclass(frozen=True)
class Cost:
    run: Run
    seconds: float


def measure() -> list[Ratio]:
    """Compiling is not counted: each contender runs for a short time before."""
    return [ratio for contest in _contests() for ratio in _compare(contest)]


def _compare(contest: Contest) -> list[Ratio]:
    ours, peer = _cost(contest, Flow(RTOL)), _cost(contest, Flow(method="rk4"))
    truth = _cost(contest, Flow(REFERENCE_RTOL)).run.w
    sharpness = [measures.Tracker(rtol=1e-4)(contest.problem, w).value for w in (truth, ours.run.w, peer.run.w)]
    off = [float(jnp.linalg.norm(c.run.w - truth) / jnp.linalg.norm(truth)) for c in (ours, peer)]
    sharp = [abs(s / sharpness[0] - 1) for s in sharpness[1:]]
    note = f"errors of w {off[0]:.0e}, {off[1]:.0e}; of λ_max {sharp[0]:.0e}, {sharp[1]:.0e}"
    rows = (("gradients", ours.run.gradients, peer.run.gradients), ("s", ours.seconds, peer.seconds))
    name = "RK4 at the step 1/λ_max"
    return [Ratio(contest.subject, name, float(a), float(b), unit, b / a, note) for unit, a, b in rows]


def _cost(contest: Contest, flow: Flow) -> Cost:
    run(contest.problem, flow, stop=until.time(contest.time) | until.steps(1))
    started = time.perf_counter()
    ended = run(contest.problem, flow, stop=until.time(contest.time))
    return Cost(ended, time.perf_counter() - started)


def _contests() -> Iterator[Contest]:
    """The same seed for all, so that only activation and data differ."""
    activations: dict[str, Callable[[Any], Array]] = {"tanh": jnp.tanh, "ReLU": jax.nn.relu}
    data = {"digits": (_digits(), DIGITS_WIDTH, DIGITS_TIME)}
    if (images := _mnist()) is not None:
        data["MNIST-5k"] = (images, MNIST_WIDTH, MNIST_TIME)
    for where, ((x, classes), width, horizon) in data.items():
        for name, activation in activations.items():
            problem = _problem(x, classes, width, activation)
            yield Contest(f"flow to t = {horizon:g}, {name}, {where}", problem, horizon)


def _problem(x: Any, classes: Any, width: int, activation: Callable[[Any], Array]) -> Problem:
    rng = np.random.default_rng(0)

    def uniform(fan_in: int, *shape: int) -> Any:
        return (rng.uniform(-1, 1, shape) / fan_in**0.5).astype(np.float32)

    def fcn(layers: Any, x: Array) -> Array:
        for W, b in layers[:-1]:
            x = activation(x @ W + b[None])
        W, b = layers[-1]
        return x @ W + b[None]

    sizes = (x.shape[1], width, width, 10)
    layers = [(uniform(a, a, b), uniform(a, b)) for a, b in pairwise(sizes)]
    x = ((x - x.mean()) / x.std()).astype(np.float32)
    return Problem(fcn, layers, x, np.eye(10, dtype=np.float32)[classes], losses.half_mse)


def _digits() -> tuple[Any, Any]:
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    digits = load_digits()
    return digits.data[:DIGITS], digits.target[:DIGITS]


def _mnist() -> tuple[Any, Any] | None:
    for folder in (os.environ.get("STEPPE_DATA"), "../shared/data", "data"):
        images = Path(folder or ".") / "mnist" / "train-images-idx3-ubyte.gz"
        if images.exists():
            labels = images.with_name("train-labels-idx1-ubyte.gz")
            x = np.frombuffer(gzip.decompress(images.read_bytes()), np.uint8, offset=16).reshape(-1, 784)[:MNIST]
            return x / 255.0, np.frombuffer(gzip.decompress(labels.read_bytes()), np.uint8, offset=8)[:MNIST]
    return None
