"""One run of a sweep: when it measures, which goals it reaches, and when it is given up."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe._result import Result, Table, columns, panel, picture
from steppe.dynamics import GD
from steppe.dynamics._base import many_steps
from steppe.dynamics._record import part
from steppe.outcome import OUTCOMES, Halt, Outcome
from steppe.problem import Problem
from steppe.rates._critical import Followed

# A product with ∇²L costs as much as two gradients.
PRODUCT = 2

# The distance between two measurements of sharpness is halved if sharpness changed by more than FAST in between, and
# doubled if it changed by less than SLOW.
FAST, SLOW = 0.05, 0.01

# The loss is recorded again before the steps have grown by more than this share: over 20 times a decade.
SPREAD = 0.1

# A run has diverged once its loss is LOST times that of the start. On digits, with squares and with cross-entropy, no
# run that reached its goal had been above 1.3 times that loss, and no run came back from a thousand times it.
LOST = 1e3

# No run counts as stalled before WAY times the time of the flow, nor before FEWEST steps.
WAY, FEWEST = 2.0, 200

# A run is stalled if, at the rate of the last doubling of its steps, the goal needs HOPELESS times the steps allowed.
HOPELESS = 10.0

# Iterates averaged where a goal is reached: an even number, because they alternate between two sides of a valley.
AVERAGED = 16

COLUMNS = ("step", "loss", "sharpness", "l1", "l2", "distance_l1", "distance_l2")
_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class Reached:
    """Where the loss first was at or below a goal: w there, and `centre`, the mean of the next iterates."""

    goal: float
    step: int
    w: Array = field(repr=False)
    centre: Array = field(repr=False)


@dataclass(frozen=True, repr=False)
class Descent(Result):
    """Gradient descent at one rate: why it ended, the goals it reached, and what was recorded on the way.

    `records` has the columns step, loss, sharpness, l1, l2, distance_l1 and distance_l2 (to the start). Sharpness is
    NaN where it was not measured. The run cost `gradients` gradients and `products` products with ∇²L.
    """

    lr: float
    outcome: Outcome
    steps: int
    gradients: int
    products: int
    reached: tuple[Reached, ...]
    records: Table

    def table(self) -> Table:
        """What was recorded, one row a moment."""
        return columns(self.records)

    def draw(self) -> Any:
        """Loss, sharpness and norms against the steps; 2/η is where gradient descent becomes unstable."""
        step, sharpness = self.records["step"], self.records["sharpness"]
        known = np.isfinite(sharpness)
        limit = np.full(int(known.sum()), 2 / self.lr)
        panels = [
            panel("step", step, "loss", {"": self.records["loss"]}),
            panel("step", step[known], "sharpness λ_max", {"sharpness": sharpness[known], "2/η": limit}),
            panel("step", step, "norm of w", {name: self.records[name] for name in ("l1", "l2")}),
        ]
        return picture(f"η = {self.lr:.4g}: {self.outcome} after {self.steps:,} steps", panels)


def spread(step: int) -> int:
    """The latest step at which loss and norms, which cost little, are recorded again.

    >>> [spread(step) for step in (0, 9, 10, 25, 1000)]
    [1, 10, 11, 27, 1100]
    """
    return step + max(1, int(SPREAD * step))


@dataclass(frozen=True)
class Moments:
    """When sharpness is measured: often where it changes, but products cost at most `share` of the gradients.

    `distance` is the number of steps to the next measurement.

    >>> Moments(share=0.3, distance=8).changed(0.2), Moments(share=0.3, distance=8).changed(0.0)
    (Moments(share=0.3, distance=4), Moments(share=0.3, distance=16))
    >>> Moments(share=0.5, distance=8).after(100, products=40)       # 40 products are paid for by 160 steps
    160
    """

    share: float
    distance: int = 1

    def changed(self, change: float) -> "Moments":
        """After a measurement that found this relative change."""
        if change > FAST:
            return Moments(self.share, max(1, self.distance // 2))
        return Moments(self.share, 2 * self.distance) if change < SLOW else self

    def after(self, step: int, *, products: int) -> int:
        """The step of the next measurement; `products` is what those so far have cost."""
        near = min(step + self.distance, spread(step))
        return max(near, math.ceil(PRODUCT * products / self.share))


def doomed(steps: Sequence[float], losses: Sequence[float], *, goal: float, most: int, way: float) -> Outcome | None:
    """`diverged` or `stalled` if a run is unlikely to reach its goal, None if it may.

    `steps` and `losses` are the records so far, the last ones of now; `most` is the number of steps allowed. `way` is
    the time η · steps in units of the flow's time to the goal, 0 if that is not known: then no run is stalled.

    Diverged: the loss is a thousand times that of the start, or not finite. Stalled: the least loss fell by the factor
    q while the steps doubled. At that rate the goal needs (loss/goal)^{1/log₂ q} times the steps so far, more than ten
    times the steps allowed, and twice the flow's time has passed.

    >>> doomed([0, 10], [1.0, 2e3], goal=0.1, most=1000, way=0.0)
    'diverged'
    >>> doomed([0, 300, 600], [1.0, 0.9, 0.8999], goal=0.1, most=1000, way=3.0)
    'stalled'
    >>> doomed([0, 300, 600], [1.0, 0.9, 0.4], goal=0.1, most=1000, way=3.0)
    """
    now, loss = steps[-1], losses[-1]
    if not loss <= LOST * losses[0]:
        return "diverged"
    if way < WAY or now < FEWEST:
        return None
    half = min(loss for step, loss in zip(steps, losses, strict=True) if step <= now / 2)
    least = min(losses)
    fall = math.log2(half / least) if least < half else 0.0
    # now · (least/goal)^{1/fall} > HOPELESS · most, in logarithms and without dividing by 0.
    return "stalled" if math.log(least / goal) > fall * math.log(HOPELESS * most / now) else None


def advance(
    problem: Problem, rates: NDArray[Any], w: NDArray[Any], *, count: int, targets: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """`count` steps from each row of w at its rate, fewer for a row that halts: the rows, the steps done, the halts.

    Each row takes the steps of `steppe.run`, to the bit.
    """
    key, zero, most = jax.random.key(0), jnp.asarray(0), jnp.asarray(count)
    if len(rates) == 1:
        target = jnp.asarray(targets[0])
        one = many_steps(problem, GD(rates[0]), jnp.asarray(w[0]), None, key, zero, zero, most, target)
        row, done, halt = (np.asarray(a)[None] for a in one)
        return row, done, halt
    many = _together(problem, jnp.asarray(rates), jnp.asarray(w), key, zero, most, jnp.asarray(targets))
    rows, done, halts = map(np.asarray, many)
    return rows, done, halts


@eqx.filter_jit
def _together(
    problem: Problem, rates: Array, w: Array, key: Array, zero: Array, count: Array, targets: Array
) -> tuple[Array, Array, Array]:
    """One rate after another within one call. A vmapped batch would be 1.4 times as fast and round differently."""

    def one(lane: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        lr, row, target = lane
        return many_steps(problem, GD(lr), row, None, key, zero, zero, count, target)

    found: tuple[Array, Array, Array] = jax.lax.map(one, (rates, w, targets))
    return found


@eqx.filter_jit
def centre(problem: Problem, lr: Array, w: Array, steps: int) -> Array:
    """The mean of `steps` iterates, w first.

    At the edge of stability the iterates alternate between two sides of a valley. The mean of an even number of them
    lies near its bottom.
    """

    def body(carry: tuple[Array, Array], nothing: None) -> tuple[tuple[Array, Array], None]:
        w, total = carry
        new, _ = GD(lr).step(problem, w, None, key=jax.random.key(0))
        return (new, total + w), None

    (_, total), _ = jax.lax.scan(body, (w, jnp.zeros_like(w)), None, length=steps)
    return total / steps


class Lane:
    """One run under way: gradient descent at `lr` from w to the last of `goals`, in at most `most` steps.

    `way` is the share of the flow's time to the last goal that one step covers, 0 if that time is not known.
    """

    def __init__(
        self, lr: float, w: Array, followed: Followed, moments: Moments, *, goals: tuple[float, ...], most: int,
        way: float,
    ):  # fmt: skip
        self.lr, self.w, self.followed, self.moments = lr, w, followed, moments
        self.goals, self.most, self.way = goals, most, way
        self.start, self.free = w, followed.products
        self.step = self.next_sharpness = self.next_loss = self.gradients = 0
        self.rows: list[tuple[float, ...]] = []
        self.reached: list[Reached] = []
        self.outcome: Outcome | None = None

    @property
    def target(self) -> float:
        return self.goals[min(len(self.reached), len(self.goals) - 1)]

    @property
    def products(self) -> int:
        """Spent by this run alone, without the measurement at the common start."""
        return self.followed.products - self.free

    @property
    def pause(self) -> int:
        """The step up to which nothing is recorded."""
        return min(self.next_sharpness, self.next_loss, self.most)

    def record(self, problem: Problem) -> None:
        """Record what is pending at this step: everything, or only loss and norms, which cost little."""
        if self.step >= self.next_sharpness:
            self.measure(problem)
        elif self.step >= self.next_loss:
            self._keep(np.nan, _numbers(problem, self.w, self.start))

    def measure(self, problem: Problem) -> None:
        """Record everything, and choose the moment of the next measurement."""
        numbers, sharpness = _numbers(problem, self.w, self.start), np.nan
        if np.isfinite(numbers[0]):
            estimate, self.followed = self.followed.measure(problem, self.w)
            sharpness, before = estimate.value, self.sharpness
            if np.isfinite(before):
                self.moments = self.moments.changed(abs(sharpness - before) / max(abs(sharpness), _TINY))
        self.next_sharpness = self.moments.after(self.step, products=self.products)
        self._keep(sharpness, numbers)

    @property
    def sharpness(self) -> float:
        """The last one measured."""
        known = (row[COLUMNS.index("sharpness")] for row in reversed(self.rows))
        return next((value for value in known if np.isfinite(value)), np.nan)

    def _keep(self, sharpness: float, numbers: tuple[Array, ...]) -> None:
        """Add a row to the records, and decide whether the run is given up."""
        loss, *norms = (float(v) for v in numbers)
        if self.rows and self.rows[-1][0] == self.step:  # this step was recorded without its sharpness
            self.rows.pop()
        self.rows.append((self.step, loss, sharpness, *norms))
        self.next_loss = spread(self.step)
        steps, losses = ([row[k] for row in self.rows] for k in (0, 1))
        self.outcome = doomed(steps, losses, goal=self.goals[-1], most=self.most, way=self.way * self.step)

    def moved(self, problem: Problem, w: Array, done: int, halt: Halt) -> None:
        """After `done` more steps led to w."""
        self.w, self.step = w, self.step + done
        self.gradients += done + (halt != Halt.NOT)
        if halt == Halt.REACHED:
            self._reach(problem)
        elif halt != Halt.NOT:
            self.outcome = halt.outcome
        elif self.step >= self.most:
            self.measure(problem)
            self.outcome = "exhausted"
            if self.rows[-1][1] <= self.target:
                self._reach(problem)

    def _reach(self, problem: Problem) -> None:
        """The loss is at or below the next goal, and perhaps below later ones too."""
        step, _, sharpness = self.rows[-1][:3] if self.rows else (-1, np.nan, np.nan)
        if step != self.step or not np.isfinite(sharpness):
            self.measure(problem)
        loss = self.rows[-1][1]
        middle = centre(problem, jnp.asarray(self.lr, self.w.dtype), self.w, AVERAGED)
        self.gradients += AVERAGED
        while len(self.reached) < len(self.goals) and loss <= self.goals[len(self.reached)]:
            self.reached.append(Reached(self.goals[len(self.reached)], self.step, self.w, middle))
        if len(self.reached) == len(self.goals):
            self.outcome = "reached"

    def finished(self) -> Descent:
        assert self.outcome is not None
        columns = np.array(self.rows, dtype=float).reshape(-1, len(COLUMNS)).T
        records = dict(zip(COLUMNS, columns, strict=True))
        reached = tuple(self.reached)
        return Descent(self.lr, self.outcome, self.step, self.gradients, self.products, reached, records)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that the rest of the run depends on."""
        end = -1 if self.outcome is None else OUTCOMES.index(self.outcome)
        counts = [self.step, self.next_sharpness, self.next_loss, self.gradients, self.moments.distance, end]
        kept = {
            "w": self.w,
            "counts": np.array(counts),
            "rows": np.array(self.rows, dtype=float).reshape(-1, len(COLUMNS)),
            "reached.step": np.array([r.step for r in self.reached], dtype=int),
            "reached.w": np.array([r.w for r in self.reached]),
            "reached.centre": np.array([r.centre for r in self.reached]),
        }
        saved = {name: np.asarray(array) for name, array in kept.items()}
        # A finished run measures no more: the vectors of its tracker are dropped, its costs are kept.
        followed = self.followed.arrays()
        names = followed if end < 0 else ("counts", "growth")
        return saved | {f"followed.{name}": followed[name] for name in names}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.w = jnp.asarray(arrays["w"])
        self.step, self.next_sharpness, self.next_loss, self.gradients, distance, end = (
            int(v) for v in arrays["counts"]
        )
        self.moments = Moments(self.moments.share, distance)
        self.rows = [tuple(row) for row in arrays["rows"].tolist()]
        points = (arrays["reached.step"].tolist(), arrays["reached.w"], arrays["reached.centre"])
        self.reached = [
            Reached(goal, step, jnp.asarray(w), jnp.asarray(c))
            for goal, step, w, c in zip(self.goals, *points, strict=False)
        ]
        self.outcome = None if end < 0 else OUTCOMES[end]
        if saved := part(arrays, "followed."):
            self.followed = self.followed.restored(saved)


@eqx.filter_jit
def _numbers(problem: Problem, w: Array, start: Array) -> tuple[Array, ...]:
    moved = w - start
    l1, l2 = jnp.sum(jnp.abs(w)), jnp.linalg.norm(w)
    return problem.loss(w), l1, l2, jnp.sum(jnp.abs(moved)), jnp.linalg.norm(moved)
