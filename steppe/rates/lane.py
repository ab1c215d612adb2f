"""One run of a sweep under way: what it has recorded, where it will look next, what it has reached."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe.dynamics.path import Halt
from steppe.dynamics.run import Outcome
from steppe.problems import Problem
from steppe.rates.advance import centre
from steppe.rates.descent import Descent, Reached
from steppe.rates.followed import Followed
from steppe.rates.moments import Moments, spread
from steppe.rates.verdicts import doomed

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
