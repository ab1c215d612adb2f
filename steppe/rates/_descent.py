"""One run of a sweep: where it looks, what it reaches, when it is given up."""

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

from steppe.dynamics import GD
from steppe.dynamics import _generic as generic
from steppe.dynamics._run import Outcome
from steppe.kernels.path import Halt
from steppe.problem import Problem
from steppe.rates._critical import Followed

# What one run of a sweep leaves behind.


@dataclass(frozen=True)
class Reached:
    """Where the loss first was at or below a goal: w there, and the mean of the iterates from there on."""

    goal: float
    step: int
    w: Array
    centre: Array


@dataclass(frozen=True)
class Descent:
    """Gradient descent at one rate: why it ended, the goals it reached, and what was recorded on the way.

    `records` has the columns step, loss, sharpness, l1, l2, distance_l1 and distance_l2 (to the start); sharpness is
    NaN where only the others were recorded. `gradients` and `products` are what it cost.
    """

    lr: float
    outcome: Outcome
    steps: int
    gradients: int
    products: int
    reached: tuple[Reached, ...]
    records: dict[str, NDArray[Any]] = field(repr=False)


# When sharpness is measured on the way: often where it changes, never beyond a share of the cost of the run; and when loss and norms are.

# A product with ∇²L costs as much as two gradients.
PRODUCT = 2

# The distance is halved where sharpness changed by more than the first share since it was last looked at, doubled
# where it changed by less than the second.
FAST, SLOW = 0.05, 0.01

# Looks are at most so far apart, relative to the steps done: 20 and more in each tenfold of steps. So are loss and
# norms, which are never too dear.
SPREAD = 0.1


def spread(step: int) -> int:
    """The step of the next look at the latest.

    >>> [spread(step) for step in (0, 9, 10, 25, 1000)]
    [1, 10, 11, 27, 1100]
    """
    return step + max(1, int(SPREAD * step))


@dataclass(frozen=True)
class Moments:
    """The distance in steps to the next look, and the share of the gradients that products may cost.

    >>> Moments(share=0.3, distance=8).changed(0.2), Moments(share=0.3, distance=8).changed(0.0)
    (Moments(share=0.3, distance=4), Moments(share=0.3, distance=16))
    >>> Moments(share=0.5, distance=8).after(100, products=40)       # 40 products are paid for by 160 steps
    160
    """

    share: float
    distance: int = 1

    def changed(self, change: float) -> "Moments":
        """After a look that found this relative change."""
        if change > FAST:
            return Moments(self.share, max(1, self.distance // 2))
        return Moments(self.share, 2 * self.distance) if change < SLOW else self

    def after(self, step: int, *, products: int) -> int:
        """The step of the next look; `products` is what the looks so far have cost."""
        near = min(step + self.distance, spread(step))
        return max(near, math.ceil(PRODUCT * products / self.share))


# Which runs are given up before their steps are over, by rules that say why.

# A loss so many times that of the start is lost. Runs that reached their goal were not seen above 1.3 times the loss of
# the start, on digits with squares and cross-entropy; none that passed a thousand times it came back.
LOST = 1e3

# The run is not judged slow before it has gone so many times the flow's way, nor before so many steps.
WAY, FEWEST = 2.0, 200

# At the pace of the last doubling of its steps the goal is so many times the steps allowed away.
HOPELESS = 10.0


def doomed(steps: Sequence[float], losses: Sequence[float], *, goal: float, most: int, way: float) -> Outcome | None:
    """`diverged` or `stalled` where a run cannot be expected to reach its goal; None where it may.

    `steps` and `losses` are what was recorded so far, the last ones now; `most` are the steps allowed; `way` is the
    time η · steps, in units of the flow's time to the goal (0 where that is not known: then no run is slow).

    Diverged: the loss is a thousand times that of the start, or not finite. Stalled: the least loss fell by the factor
    q while the steps doubled; were it to go on so, (loss/goal)^{1/log₂ q} times as many steps would be needed, more
    than ten times those allowed, although twice the flow's time has passed.

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


# Many steps of gradient descent at many rates in one compiled call.


def advance(
    problem: Problem, rates: NDArray[Any], w: NDArray[Any], *, count: int, targets: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """`count` steps from each row of w at its rate, fewer where its target is reached or its loss is lost.

    Returns the rows, the steps done and the halts. Each takes the steps of `steppe.run`, to the bit.
    """
    key, zero, most = jax.random.key(0), jnp.asarray(0), jnp.asarray(count)
    if len(rates) == 1:
        target = jnp.asarray(targets[0])
        one = generic.advance(problem, GD(rates[0]), jnp.asarray(w[0]), None, key, zero, zero, most, target)
        row, done, halt = (np.asarray(a)[None] for a in one)
        return row, done, halt
    many = _together(problem, jnp.asarray(rates), jnp.asarray(w), key, zero, most, jnp.asarray(targets))
    rows, done, halts = map(np.asarray, many)
    return rows, done, halts


@eqx.filter_jit
def _together(
    problem: Problem, rates: Array, w: Array, key: Array, zero: Array, count: Array, targets: Array
) -> tuple[Array, Array, Array]:
    """One rate after another within one call: a batch of them would be 1.4 times as fast and round differently."""

    def one(lane: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        lr, row, target = lane
        return generic.advance(problem, GD(lr), row, None, key, zero, zero, count, target)

    found: tuple[Array, Array, Array] = jax.lax.map(one, (rates, w, targets))
    return found


@eqx.filter_jit
def centre(problem: Problem, lr: Array, w: Array, steps: int) -> Array:
    """The mean of w and of the iterates after it, `steps` points in all.

    At the edge of stability the iterates jump across a valley, to and fro; their mean over an even number of them lies
    near its bottom.
    """

    def body(carry: tuple[Array, Array], nothing: None) -> tuple[tuple[Array, Array], None]:
        w, total = carry
        new, _ = GD(lr).step(problem, w, None, key=jax.random.key(0))
        return (new, total + w), None

    (_, total), _ = jax.lax.scan(body, (w, jnp.zeros_like(w)), None, length=steps)
    return total / steps


# One run of a sweep under way: what it has recorded, where it will look next, what it has reached.

COLUMNS = ("step", "loss", "sharpness", "l1", "l2", "distance_l1", "distance_l2")

# Iterates averaged where a goal is reached: an even number, for jumps to and fro.
AVERAGED = 16

_TINY = float(np.finfo(float).tiny)
_ENDS: tuple[Outcome, ...] = ("reached", "exhausted", "diverged", "stalled")
_HALTED: dict[Halt, Outcome] = {Halt.DIVERGED: "diverged", Halt.STALLED: "stalled"}


class Lane:
    """Gradient descent at `lr` from w to the last of `goals`, in at most `most` steps.

    `way` is the part of the flow's time to the last goal that one step goes (0 where that is not known).
    """

    def __init__(
        self, lr: float, w: Array, followed: Followed, moments: Moments, *, goals: tuple[float, ...], most: int,
        way: float,
    ):  # fmt: skip
        self.lr, self.w, self.followed, self.moments = lr, w, followed, moments
        self.goals, self.most, self.way = goals, most, way
        self.start, self.free = w, followed.products
        self.step = self.moment = self.glimpse = self.gradients = 0
        self.rows: list[tuple[float, ...]] = []
        self.reached: list[Reached] = []
        self.outcome: Outcome | None = None

    @property
    def target(self) -> float:
        return self.goals[min(len(self.reached), len(self.goals) - 1)]

    @property
    def products(self) -> int:
        """Spent by this run itself; the measurement at the common start is not counted."""
        return self.followed.products - self.free

    @property
    def pause(self) -> int:
        """The step up to which it may go on without being looked at."""
        return min(self.moment, self.glimpse, self.most)

    def record(self, problem: Problem) -> None:
        """What is due at this step: sharpness at the moments for it; loss and norms, which cost little, more often."""
        if self.step >= self.moment:
            self.look(problem)
        elif self.step >= self.glimpse:
            self._keep(np.nan, _numbers(problem, self.w, self.start))

    def look(self, problem: Problem) -> None:
        """Record everything, and choose the next moment."""
        numbers, sharpness = _numbers(problem, self.w, self.start), np.nan
        if np.isfinite(numbers[0]):
            estimate, self.followed = self.followed.measure(problem, self.w)
            sharpness, before = estimate.value, self.sharpness
            if np.isfinite(before):
                self.moments = self.moments.changed(abs(sharpness - before) / max(abs(sharpness), _TINY))
        self.moment = self.moments.after(self.step, products=self.products)
        self._keep(sharpness, numbers)

    @property
    def sharpness(self) -> float:
        """The last one measured."""
        known = (row[COLUMNS.index("sharpness")] for row in reversed(self.rows))
        return next((value for value in known if np.isfinite(value)), np.nan)

    def _keep(self, sharpness: float, numbers: tuple[Array, ...]) -> None:
        """A row of the records, and whether the run is to be given up after it."""
        loss, *norms = (float(v) for v in numbers)
        if self.rows and self.rows[-1][0] == self.step:  # recorded already, without its sharpness
            self.rows.pop()
        self.rows.append((self.step, loss, sharpness, *norms))
        self.glimpse = spread(self.step)
        steps, losses = ([row[k] for row in self.rows] for k in (0, 1))
        self.outcome = doomed(steps, losses, goal=self.goals[-1], most=self.most, way=self.way * self.step)

    def moved(self, problem: Problem, w: Array, done: int, halt: Halt) -> None:
        """After `done` more steps led to w."""
        self.w, self.step = w, self.step + done
        self.gradients += done + (halt != Halt.NOT)
        if halt == Halt.REACHED:
            self._reach(problem)
        elif halt in _HALTED:
            self.outcome = _HALTED[halt]
        elif self.step >= self.most:
            self.look(problem)
            self.outcome = "exhausted"
            if self.rows[-1][1] <= self.target:
                self._reach(problem)

    def _reach(self, problem: Problem) -> None:
        """The loss is at or below the next goal, and maybe below some after it."""
        step, _, sharpness = self.rows[-1][:3] if self.rows else (-1, np.nan, np.nan)
        if step != self.step or not np.isfinite(sharpness):
            self.look(problem)
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
        end = -1 if self.outcome is None else _ENDS.index(self.outcome)
        counts = [self.step, self.moment, self.glimpse, self.gradients, self.moments.distance, end]
        kept = {
            "w": self.w,
            "counts": np.array(counts),
            "rows": np.array(self.rows, dtype=float).reshape(-1, len(COLUMNS)),
            "reached.step": np.array([r.step for r in self.reached], dtype=int),
            "reached.w": np.array([r.w for r in self.reached]),
            "reached.centre": np.array([r.centre for r in self.reached]),
        }
        saved = {name: np.asarray(array) for name, array in kept.items()}
        # A finished run measures no more: of its tracker what it has spent is kept, not its vectors.
        followed = self.followed.arrays()
        names = followed if end < 0 else ("counts", "growth")
        return saved | {f"followed.{name}": followed[name] for name in names}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.w = jnp.asarray(arrays["w"])
        self.step, self.moment, self.glimpse, self.gradients, distance, end = (int(v) for v in arrays["counts"])
        self.moments = Moments(self.moments.share, distance)
        self.rows = [tuple(row) for row in arrays["rows"].tolist()]
        points = (arrays["reached.step"].tolist(), arrays["reached.w"], arrays["reached.centre"])
        self.reached = [
            Reached(goal, step, jnp.asarray(w), jnp.asarray(c))
            for goal, step, w, c in zip(self.goals, *points, strict=False)
        ]
        self.outcome = None if end < 0 else _ENDS[end]
        prefix = "followed."
        saved = {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
        if saved:
            self.followed = self.followed.restored(saved)


@eqx.filter_jit
def _numbers(problem: Problem, w: Array, start: Array) -> tuple[Array, ...]:
    moved = w - start
    l1, l2 = jnp.sum(jnp.abs(w)), jnp.linalg.norm(w)
    return problem.loss(w), l1, l2, jnp.sum(jnp.abs(moved)), jnp.linalg.norm(moved)
