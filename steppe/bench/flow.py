"""Gradient flow: our RKC2 against the classical method at the step 1/λ_max, in gradients and seconds.

FCNs of PyTorch's default initialisation (half_mse, float32) on scikit-learn's digits, and on the first 5,000 images of
MNIST where its files are. To a time both are run. With tanh both ends are compared with that of the classical method at
an eighth of its step. With ReLU no step is short enough to be the truth: gradient descent at a small rate is run as a
third, and the error of each is told from the distances between the three. The classical step is bounded by stability,
not by its error: it cannot trade a smaller error for fewer gradients. Ours can, so it is shown twice: at rtol 1e-2, and
at the first rtol, of a ladder, with the error of the classical method. To a small loss on MNIST that would run for
hours. There it is counted: at the step 1/λ it takes 4∫λ dt gradients, λ as measured along our flow, at the speed of its
first steps.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import data, losses, measures, networks, until, when
from steppe.bench import Ratio
from steppe.bench.three_cornered import own_errors
from steppe.dynamics import GD, Run, run
from steppe.dynamics._flow import RK4, Flow
from steppe.networks import build
from steppe.problem import Problem

# The last is near the finest that float32 allows.
RTOLS = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
# Errors within this factor are the same: they are distances to an end that rounding moves too.
SAME = 1.5
REFERENCE = Flow(method=RK4(1 / 8))
# The rate of the descent beside the flows of ReLU networks, in 1/λ_max at their end.
DESCENT = 0.25
DIGITS, DIGITS_WIDTH, DIGITS_TIME = 500, 50, 100.0
# The ratio grows with the time.
MNIST, MNIST_WIDTH, MNIST_TIME = 5_000, 200, {"tanh": 1.0, "ReLU": 30.0}
MNIST_LOSSES, TARGETS = {"tanh": 0.003, "ReLU": 0.001}, {"tanh": 100, "ReLU": 15}
TO_A_LOSS = {"tanh": Flow(3e-4), "ReLU": Flow(3e-3)}
ACTIVATIONS = {"tanh": networks.tanh, "ReLU": networks.relu}
PEER_STEPS = 20
PEER = "RK4 at the step 1/λ_max"

# Often enough for the integral of λ to 1%: it changes by little in 5% more steps.
_LOOKS = when.logarithmic(per_decade=50)


@dataclass(frozen=True)
class Contest:
    subject: str
    problem: Problem
    time: float
    smooth: bool = True


@dataclass(frozen=True)
class Cost:
    run: Run
    seconds: float


def measure() -> list[Ratio]:
    """Compiling is not counted: each contender runs for a short time before."""
    ratios = [ratio for contest in _contests() for ratio in _compare(contest)]
    if (images := _mnist()) is not None:
        for name, goal in MNIST_LOSSES.items():
            subject, note = f"flow to loss {goal:g}, {name}, MNIST-5k", f"target ≥ {TARGETS[name]}"
            ratios += _counted(subject, _problem(images, name, MNIST_WIDTH), TO_A_LOSS[name], goal, note)
    return ratios


def _compare(contest: Contest) -> list[Ratio]:
    """At the first rtol, and at the one where our error is that of the classical method, or the last."""
    peer = _cost(contest, Flow(method="rk4"))
    way = float(jnp.linalg.norm(peer.run.w - contest.problem.w0))
    other = _cost(contest, REFERENCE).run.w if contest.smooth else _descent(contest, peer.run.w)
    sharpness, ratios = [_sharpness(contest, w) for w in (peer.run.w, other)], []
    for rtol in RTOLS:
        ours = _cost(contest, Flow(rtol))
        theirs, off = (e / way for e in _errors(contest, peer.run.w, other, ours.run.w))
        same = off <= SAME * theirs
        if same or rtol in (RTOLS[0], RTOLS[-1]):
            three = ", ".join(f"{value:.4g}" for value in (_sharpness(contest, ours.run.w), *sharpness))
            beside = "RK4 at 1/8 of the step" if contest.smooth else "descent"
            note = f"rtol {rtol:g}; errors {off:.0e}, {theirs:.0e} of the way; λ_max {three} (ours, RK4, {beside})"
            rows = (("gradients", ours.run.gradients, peer.run.gradients), ("s", ours.seconds, peer.seconds))
            ratios += [Ratio(contest.subject, PEER, float(a), float(b), unit, b / a, note) for unit, a, b in rows]
        if same:
            break
    return ratios


def _errors(contest: Contest, peer: Array, other: Array, ours: Array) -> tuple[float, float]:
    """Theirs and ours."""
    if contest.smooth:
        return float(jnp.linalg.norm(peer - other)), float(jnp.linalg.norm(ours - other))
    theirs, _, own = own_errors(peer, other, ours)
    return theirs, own


def _descent(contest: Contest, end: Array) -> Array:
    """Where gradient descent at a small rate is after the time of the flow."""
    steps = int(np.ceil(contest.time * _sharpness(contest, end) / DESCENT))
    return run(contest.problem, GD(contest.time / steps), stop=until.steps(steps)).w


def _sharpness(contest: Contest, w: Array) -> float:
    return measures.Tracker(rtol=1e-4)(contest.problem, w).value


@dataclass
class _Watched:
    """λ_max along a run, and the seconds it took to measure."""

    tracker: measures.Tracker = field(default_factory=measures.Tracker)
    seconds: float = 0.0

    def __call__(self, problem: Problem, w: Array) -> float:
        started = time.perf_counter()
        value = self.tracker(problem, w).value
        self.seconds += time.perf_counter() - started
        return value


def _counted(subject: str, problem: Problem, flow: Flow, goal: float, note: str) -> list[Ratio]:
    """Our flow to a loss, and what the classical method would take along it."""
    run(problem, flow, stop=until.loss(goal) | until.steps(1))
    watched, started = _Watched(), time.perf_counter()
    ended = run(problem, flow, stop=until.loss(goal), record={"sharpness": watched}, when=_LOOKS)
    seconds = time.perf_counter() - started - watched.seconds
    gradients = 4.0 * float(np.trapezoid(ended.records["sharpness"], ended.records["time"]))
    first = _cost(Contest(subject, problem, np.inf), Flow(method="rk4"), until.steps(PEER_STEPS))
    theirs = first.seconds * gradients / first.run.gradients
    rows = (("gradients", float(ended.gradients), gradients), ("s", seconds, theirs))
    return [Ratio(subject, PEER, a, b, unit, b / a, f"RK4 counted by 4∫λ dt; {note}") for unit, a, b in rows]


def _cost(contest: Contest, flow: Flow, stop: until.Stop | None = None) -> Cost:
    stop = stop or until.time(contest.time)
    run(contest.problem, flow, stop=stop | until.steps(1))
    started = time.perf_counter()
    ended = run(contest.problem, flow, stop=stop)
    return Cost(ended, time.perf_counter() - started)


def _contests() -> Iterator[Contest]:
    """The same seed for all, so that only activation and data differ."""
    sets = {"digits": (data.digits(DIGITS, test=1), DIGITS_WIDTH, dict.fromkeys(ACTIVATIONS, DIGITS_TIME))}
    if (images := _mnist()) is not None:
        sets["MNIST-5k"] = (images, MNIST_WIDTH, MNIST_TIME)
    for where, (images, width, times) in sets.items():
        for name, horizon in times.items():
            problem = _problem(images, name, width)
            yield Contest(f"flow to t = {horizon:g}, {name}, {where}", problem, horizon, smooth=name == "tanh")


def _problem(images: data.Dataset, activation: str, width: int) -> Problem:
    return build(networks.FCN((width, width), ACTIVATIONS[activation]), images, losses.half_mse, seed=0).train


def _mnist() -> data.Dataset | None:
    try:
        return data.mnist(MNIST, test=1)
    except data.MissingDataError:
        return None
