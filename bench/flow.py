"""Gradient flow: our RKC2 against the classical method at the step 1/λ_max, in gradients and seconds.

The networks are FCNs with PyTorch's default initialisation (half_mse, float32). The data are scikit-learn's digits, and
the first 5,000 images of MNIST if its files are there.

To a time both methods run. With tanh the truth is the classical method at an eighth of its step, and both ends are
compared with it. With ReLU no step is short enough to give the truth: gradient descent at a small rate runs as a third
method, and the distances between the three ends give the error of each. Stability bounds the step of the classical
method, not its error: it cannot save gradients by a larger error. Ours can, so it appears twice: at rtol 1e-2, and at
the first rtol of a ladder whose error is that of the classical method.

To a small loss on MNIST the classical method would run for hours. Its gradients are counted: at the step 1/λ it takes
4∫λ dt of them, with λ measured along our flow. Its seconds follow from the speed of its first steps.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from steppe import activations, data, losses, measures, networks, until, when
from steppe.dynamics import GD, RK4, Flow, Run, run
from steppe.estimate import Accuracy
from steppe.networks import build
from steppe.problem import Problem

from . import Ratio

# The last one is near the least that float32 allows.
RTOLS = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
# Errors within this factor count as equal: rounding moves the end to which they are distances.
SAME = 1.5
CLASSICAL, REFERENCE = Flow(method=RK4()), Flow(method=RK4(1 / 8))
# The rate of gradient descent beside the flows of ReLU networks, in units of 1/λ_max at their end.
DESCENT = 0.25
DIGITS, DIGITS_WIDTH, DIGITS_TIME = 500, 50, 100.0
# The longer the time, the larger the ratio.
MNIST, MNIST_WIDTH, MNIST_TIME = 5_000, 200, {"tanh": 1.0, "ReLU": 30.0}
MNIST_LOSSES, TARGETS = {"tanh": 0.003, "ReLU": 0.001}, {"tanh": 100, "ReLU": 15}
TO_A_LOSS = {"tanh": Flow(3e-4), "ReLU": Flow(3e-3, verify=False)}
ACTIVATIONS = {"tanh": activations.tanh, "ReLU": activations.relu}
PEER_STEPS = 20
PEER = "RK4 at the step 1/λ_max"

# Often enough for 1% of the integral of λ, which changes little while the steps grow by 5%.
_MOMENTS = when.logarithmic(per_decade=50)


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
    """Each method takes one step before it is timed, so compiling is not counted."""
    ratios = [ratio for contest in _contests() for ratio in _compare(contest)]
    if (images := _mnist()) is not None:
        for name, goal in MNIST_LOSSES.items():
            subject, note = f"flow to loss {goal:g}, {name}, MNIST-5k", f"target ≥ {TARGETS[name]}"
            ratios += _counted(subject, _problem(images, name, MNIST_WIDTH), TO_A_LOSS[name], goal, note)
    return ratios


def _compare(contest: Contest) -> list[Ratio]:
    """The ratios at the first rtol, and at the first one where our error equals that of the classical method.

    If there is no such rtol, the last one is shown.
    """
    peer = _cost(contest, CLASSICAL)
    distance = float(jnp.linalg.norm(peer.run.w - contest.problem.w0))
    other = _cost(contest, REFERENCE).run.w if contest.smooth else _descent(contest, peer.run.w)
    sharpness, ratios = [_sharpness(contest, w) for w in (peer.run.w, other)], []
    for rtol in RTOLS:
        ours = _cost(contest, Flow(rtol, verify=False))
        theirs, ours_off = (e / distance for e in _errors(contest, peer.run.w, other, ours.run.w))
        same = ours_off <= SAME * theirs
        if same or rtol in (RTOLS[0], RTOLS[-1]):
            three = ", ".join(f"{value:.4g}" for value in (_sharpness(contest, ours.run.w), *sharpness))
            beside = "RK4 at 1/8 of the step" if contest.smooth else "descent"
            errors = f"relative errors {ours_off:.0e}, {theirs:.0e}"
            note = f"rtol {rtol:g}; {errors}; λ_max {three} (ours, RK4, {beside})"
            rows = (("gradients", ours.run.gradients, peer.run.gradients), ("s", ours.seconds, peer.seconds))
            ratios += [Ratio(contest.subject, PEER, float(a), float(b), unit, b / a, note) for unit, a, b in rows]
        if same:
            break
    return ratios


def _errors(contest: Contest, peer: Array, other: Array, ours: Array) -> tuple[float, float]:
    """The error of theirs and of ours."""
    if contest.smooth:
        return float(jnp.linalg.norm(peer - other)), float(jnp.linalg.norm(ours - other))
    theirs, _, own = own_errors(peer, other, ours)
    return theirs, own


def own_errors(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> tuple[float, float, float]:
    """The error of each of three methods when the truth is unknown: the three-cornered hat (Gray and Allan 1974).

    If the errors are orthogonal, ‖a − b‖² = e_a² + e_b², and likewise for the other pairs. In many dimensions errors of
    different origin are nearly orthogonal. If one error is far below the other two, its square can come out negative;
    then it is given as 0.

    >>> own_errors([3.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 5.0])
    (3.0, 4.0, 5.0)
    """
    a, b, c = (np.asarray(v, dtype=float) for v in (a, b, c))
    ab, ac, bc = (float(np.sum((u - v) ** 2)) for u, v in ((a, b), (a, c), (b, c)))
    e_a, e_b, e_c = (max(twice / 2, 0.0) ** 0.5 for twice in (ab + ac - bc, ab + bc - ac, ac + bc - ab))
    return e_a, e_b, e_c


def _descent(contest: Contest, end: Array) -> Array:
    """The end of gradient descent at a small rate after the time of the flow."""
    steps = int(np.ceil(contest.time * _sharpness(contest, end) / DESCENT))
    return run(contest.problem, GD(contest.time / steps), stop=until.steps(steps)).w


def _sharpness(contest: Contest, w: Array) -> float:
    return measures.Tracker(accuracy=Accuracy(1e-4))(contest.problem, w).value


@dataclass
class _Watched:
    """λ_max along a run, and the seconds that its measurements took."""

    tracker: measures.Tracker = field(default_factory=measures.Tracker)
    seconds: float = 0.0

    def __call__(self, problem: Problem, w: Array) -> float:
        started = time.perf_counter()
        value = self.tracker(problem, w).value
        self.seconds += time.perf_counter() - started
        return value


def _counted(subject: str, problem: Problem, flow: Flow, goal: float, note: str) -> list[Ratio]:
    """Our flow to a loss, and what the classical method would cost along the same path."""
    run(problem, flow, stop=until.loss(goal) | until.steps(1))
    watched, started = _Watched(), time.perf_counter()
    ended = run(problem, flow, stop=until.loss(goal), record={"sharpness": watched}, when=_MOMENTS)
    seconds = time.perf_counter() - started - watched.seconds
    gradients = 4.0 * float(np.trapezoid(ended.records["sharpness"], ended.records["time"]))
    first = _cost(Contest(subject, problem, np.inf), CLASSICAL, until.steps(PEER_STEPS))
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
    """All start from one seed, so that only activation and data differ."""
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
