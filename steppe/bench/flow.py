"""Gradient flow to a time: our RKC2 against the classical method at the step 1/λ_max, in gradients and seconds.

FCNs of PyTorch's default initialisation (half_mse, float32) on scikit-learn's digits, and on the first 5,000 images of
MNIST where its files are. Both ends are compared with that of RKC2 at a finer tolerance. The classical method's step is
bounded by stability, not by its error: it cannot trade its smaller error for fewer gradients.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import jax.numpy as jnp

from steppe import losses, measures, until
from steppe.bench import Ratio
from steppe.dynamics import Flow, Run, run
from steppe.problems import Problem, build, data, networks

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
    activations = {"tanh": networks.tanh, "ReLU": networks.relu}
    sets = {"digits": (data.digits(DIGITS, test=1), DIGITS_WIDTH, DIGITS_TIME)}
    if (images := _mnist()) is not None:
        sets["MNIST-5k"] = (images, MNIST_WIDTH, MNIST_TIME)
    for where, (images, width, horizon) in sets.items():
        for name, activation in activations.items():
            network = networks.FCN((width, width), activation)
            problem = build(network, images, losses.half_mse, seed=0).train
            yield Contest(f"flow to t = {horizon:g}, {name}, {where}", problem, horizon)


def _mnist() -> data.Dataset | None:
    try:
        return data.mnist(MNIST, test=1)
    except data.MissingDataError:
        return None
