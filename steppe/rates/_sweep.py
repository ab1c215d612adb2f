"""A sweep of learning rates across the critical one, on any problem: which rates, and what is measured."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check
from steppe._random import seed
from steppe._result import Result, Table
from steppe.dynamics import Checkpoint, Dynamics, Flow, Progress
from steppe.dynamics._record import part
from steppe.outcome import OUTCOMES, Outcome
from steppe.problem import Problem
from steppe.rates._critical import Critical, ReadOnce, critical_arrays, critical_rate, restored_critical
from steppe.rates._descent import Descent, Reached
from steppe.rates._descents import Descents, Limits, Runner
from steppe.rates._family import Carried, Family
from steppe.rates._measured import everything

# The coarse grid ends where this many neighbouring rates did not reach their goal.
FAILURES = 2

# If fewer than ENOUGH rates above the fine grid reach the goal, the spacing is halved, at most HALVINGS times.
ENOUGH, HALVINGS = 4, 3

_MOST_BEYOND = 40

# The window of the smoothed maximum, relative to the length of the run.
WINDOW = 0.05

_ALONG = ("steps", "largest_sharpness", "smoothed_sharpness")


@dataclass(frozen=True)
class Plan:
    """Which rates a sweep runs next: the fine and the coarse grid of appendix G of conflicting-biases for one flow.

    The coarse grid continues until runs fail, and is refined if they fail early. `next` is a pure function of the
    outcomes so far: a killed sweep resumes with the same rates, whether it runs one rate at a time or many together.
    """

    critical: Critical
    fine: bool = True
    coarse: bool = True

    def next(self, outcomes: Mapping[float, Outcome]) -> list[float]:
        """The rates to run now, rising; none if the sweep is complete."""
        wanted = self._below_failure(self._base(), outcomes)
        if missing := [lr for lr in wanted if lr not in outcomes]:
            return missing
        if not self.coarse:
            return []
        beyond = 0
        while not self._failed(wanted, outcomes) and beyond < _MOST_BEYOND:
            beyond += FAILURES
            wanted = self._below_failure(self._merged(self._base(), self._coarse(beyond=beyond)), outcomes)
            if missing := [lr for lr in wanted if lr not in outcomes]:
                return missing
        first = min(self._failures(wanted, outcomes), default=np.inf)
        for k in range(1, HALVINGS + 1):
            # The spacing is halved everywhere or nowhere, so that the order of the runs does not matter.
            if self._reached_beyond_fine(wanted, outcomes) >= ENOUGH:
                break
            between = [lr for lr in self._coarse(refine=2**k) if 6 / self.critical.largest_sharpness < lr < first]
            wanted = self._merged(wanted, between)
            if missing := [lr for lr in wanted if lr not in outcomes]:
                return missing
        return []

    def kept(self, outcomes: Mapping[float, Outcome]) -> list[float]:
        """The rates of the sweep: without those that ran in one batch with others, but lie beyond the failures."""
        return self._below_failure(sorted(outcomes), outcomes)

    def _base(self) -> list[float]:
        fine = self.critical.fine_grid().tolist() if self.fine else []
        return self._merged(fine, self._coarse() if self.coarse else [])

    def _coarse(self, *, beyond: int = 0, refine: int = 1) -> list[float]:
        return self.critical.coarse_grid(beyond=beyond, refine=refine).tolist()

    @staticmethod
    def _merged(rates: list[float], others: list[float]) -> list[float]:
        """Both lists, rising, without rates of the second that equal another one up to rounding."""
        merged = sorted(rates)
        for lr in others:
            if not any(abs(lr - known) < 1e-6 * known for known in merged):
                merged.append(lr)
        return sorted(merged)

    @staticmethod
    def _below_failure(rates: list[float], outcomes: Mapping[float, Outcome]) -> list[float]:
        """The rates up to the second of two neighbours that failed, that one included."""
        failures = 0
        for k, lr in enumerate(rates):
            failures = failures + 1 if outcomes.get(lr, "reached") != "reached" else 0
            if failures == FAILURES:
                return rates[: k + 1]
        return rates

    @staticmethod
    def _failures(rates: list[float], outcomes: Mapping[float, Outcome]) -> list[float]:
        return [lr for lr in rates if outcomes[lr] != "reached"]

    def _failed(self, rates: list[float], outcomes: Mapping[float, Outcome]) -> bool:
        return len(self._failures(rates[-FAILURES:], outcomes)) == FAILURES

    def _reached_beyond_fine(self, rates: list[float], outcomes: Mapping[float, Outcome]) -> int:
        edge = 6 / self.critical.largest_sharpness
        return sum(outcomes[lr] == "reached" and lr > edge * (1 + 1e-6) for lr in rates)


def smoothed_maximum(steps: NDArray[Any], values: NDArray[Any], *, window: float = WINDOW) -> float:
    """The largest mean of the values over a stretch of the run: the jitter of the edge of stability averages out.

    The stretch is the share `window` of the run; between the recorded points the values follow straight lines.

    >>> smoothed_maximum(np.arange(5), np.array([1.0, 1.0, 3.0, 1.0, 1.0]), window=0.5)   # over [1, 3]
    2.0
    """
    steps, values = np.asarray(steps, dtype=float), np.asarray(values, dtype=float)
    known = np.isfinite(values)
    steps, values = steps[known], values[known]
    if len(steps) < 2:
        return float(values.max(initial=np.nan))
    width = window * (steps[-1] - steps[0])
    area = np.append(0.0, np.cumsum(np.diff(steps) * (values[1:] + values[:-1]) / 2))

    def mean(start: NDArray[Any]) -> NDArray[Any]:
        return (_integral(steps, values, area, start + width) - _integral(steps, values, area, start)) / width

    # Candidates are the stretches that start, end or have their centre at a recorded point.
    starts = np.concatenate([steps, steps - width, steps - width / 2])
    return float(mean(np.clip(starts, steps[0], steps[-1] - width)).max())


def _integral(x: NDArray[Any], y: NDArray[Any], area: NDArray[Any], to: NDArray[Any]) -> NDArray[Any]:
    """∫ of the line through (x, y) from x[0] to `to`."""
    k = np.clip(np.searchsorted(x, to, side="right") - 1, 0, len(x) - 2)
    h = to - x[k]
    slope = (y[k + 1] - y[k]) / (x[k + 1] - x[k])
    return area[k] + h * y[k] + h * h * slope / 2


def ends_table(
    problem: Problem, descents: Sequence[Descent], goals: Sequence[float], critical: Sequence[Critical], *,
    start: Array, test: Problem | None, all_sharpness: bool, key: int,
) -> Table:  # fmt: skip
    """One row for each rate and goal: all that is measured where the rate reached the goal, NaN where it did not.

    `all_sharpness` applies to the last goal only.
    """
    flow_ends = {c.loss: c.w for c in critical if c.outcome == "reached"}
    rows = []
    options: dict[str, Any] = {"start": start, "test": test, "key": key}
    for descent in descents:
        points = {point.goal: point for point in descent.reached}
        for goal in goals:
            row: dict[str, float] = {"lr": descent.lr, "goal": goal, "limit": 2 / descent.lr}
            row["outcome"] = OUTCOMES.index("reached" if goal in points else descent.outcome)
            if (point := points.get(goal)) is not None:
                row |= path_numbers(descent, point)
                row |= everything(
                    problem, point.w, point.centre, flow_end=flow_ends.get(goal),
                    all_sharpness=all_sharpness and goal == goals[-1], **options,
                )  # fmt: skip
            rows.append(row)
    if not any(descent.reached for descent in descents):
        # No goal was reached: a measurement at the start gives the names of the columns.
        flow_end = start if flow_ends else None
        names = everything(problem, start, start, flow_end=flow_end, all_sharpness=all_sharpness, **options)
        rows[0] |= dict.fromkeys((*_ALONG, *names), np.nan)
    return stacked(rows)


def path_numbers(descent: Descent, point: Reached) -> dict[str, float]:
    """The run until it reached a goal: its steps, and the largest and the smoothed sharpness on the way."""
    records = descent.records
    steps = records["step"]
    until = steps <= point.step
    sharpness = records["sharpness"][until]
    largest, smoothed = float(np.nanmax(sharpness)), smoothed_maximum(steps[until], sharpness)
    return dict(zip(_ALONG, (float(point.step), largest, smoothed), strict=True))


def flow_row(
    problem: Problem, critical: Sequence[Critical], *, start: Array, test: Problem | None, all_sharpness: bool, key: int
) -> Table:
    """The same columns at the ends of the flow, one row a goal. The centre of a flow is its end."""
    return stacked(
        {"goal": c.loss, "time": c.time, "largest_sharpness": c.largest_sharpness,
         "initial_sharpness": c.initial_sharpness, "critical": c.rate, "gradients": float(c.gradients),
         "outcome": float(OUTCOMES.index(c.outcome))}
        | everything(problem, c.w, c.w, start=start, test=test, flow_end=None, key=key,
                     all_sharpness=all_sharpness and c is critical[-1])
        for c in critical
    )  # fmt: skip


def stacked(rows: Iterable[dict[str, float]]) -> Table:
    """Rows as columns; NaN where a row lacks a number."""
    rows = list(rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: np.array([row.get(name, np.nan) for row in rows], dtype=float) for name in names}


@dataclass(frozen=True, repr=False)
class Sweep(Result):
    """Gradient descent at every rate, and all that was measured at its ends.

    `critical` holds the flow to each goal; it is empty if no flow was run. `ends` has a row for each rate and goal,
    with NaN for a goal that was not reached; `flow` has the same columns for the ends of the flow. `convention` says
    which sharpness is stable below which `limit`.
    """

    critical: tuple[Critical, ...]
    descents: tuple[Descent, ...]
    ends: Table
    flow: Table
    convention: str = "gradient descent: λ_max(∇²L), edge at 2/η"

    def at(self, goal: float) -> Table:
        """The rows of one goal, in the order of the rates."""
        rows = np.isclose(self.ends["goal"], goal, rtol=1e-9, atol=0)
        if not rows.any():
            known = ", ".join(f"{g:g}" for g in np.unique(self.ends["goal"])[::-1])
            check.refuse("goal", "one of the sweep", goal, f"Its goals are {known}.")
        return {name: column[rows] for name, column in self.ends.items()}

    def table(self) -> Table:
        """All that was measured, one row for each rate and goal."""
        return self.ends | {"outcome": np.array([OUTCOMES[int(k)] for k in self.ends["outcome"]])}

    def draw(self, goal: float | None = None) -> Any:
        """Sharpness, ℓ1 norm, test loss where there is test data, and iterations of the ends at `goal` (default: the
        last)."""
        from steppe import figures
        from steppe.rates._draw import numbers

        return figures.rates(numbers(self, goal))


def sweep(
    problem: Problem,
    rates: Sequence[float] | None = None,
    *,
    dynamics: Callable[[float], Dynamics] | Family | None = None,
    w: Any = None,
    goals: Sequence[float] = (1e-1, 1e-2),
    test: Problem | None = None,
    critical: tuple[Critical, ...] | None = None,
    flow: Flow | None = None,
    fine: bool = True,
    coarse: bool = True,
    share: float = 0.3,
    patience: float = 10.0,
    steps: int = 1_000_000,
    all_sharpness: bool = False,
    together: bool | None = None,
    runner: Callable[[Limits], Runner] | None = None,
    checkpoint: Checkpoint | None = None,
    progress: Callable[[Progress], None] | None = None,
    key: int | Array = 0,
) -> Sweep:
    """Gradient descent from w (default problem.w0) at each rate until the last of the goals, measured at each goal.

    Without `rates` the flow is run first, unless `critical` holds its results. The sweep then takes the fine and the
    coarse grid of the flow, until two neighbouring rates do not reach the goal. Products with ∇²L on the way cost at
    most `share` of the gradients. A run ends at the last goal, if it is lost or too slow (`steppe.rates.doomed`), after
    `patience` times the steps that the flow's time to the goal would take, or after `steps`.

    `together` runs all rates in one compiled call, the default for small problems: the same numbers, to the bit.
    With a `checkpoint` of the store a killed sweep resumes to the same result. A `runner` carries out the runs
    elsewhere, in a store for example.

    `dynamics` makes another dynamics from a rate: `lambda lr: HeavyBall(lr, 0.9)`, SGD as `GD(lr, batch_size=32)`,
    SAM, any `Optax`, or `steppe.rates.Family.adam()`. Then each rate runs alone, as long as its loss is finite.
    `limit` is the edge of that dynamics, and `stable_sharpness` what stays below it where that is not λ_max(∇²L);
    `convention` of the result says so.

    >>> import jax.numpy as jnp, steppe
    >>> p = Problem(lambda w, x: w[0] * w[1] * x, jnp.array([2.0, 0.1]), jnp.ones(1), jnp.ones(1),
    ...     steppe.losses.half_mse)
    >>> found = sweep(p, [0.05, 0.6, 3.0], goals=[1e-6])
    >>> [d.outcome for d in found.descents], [bool(s * lr <= 2) for s, lr in zip(found.ends["sharpness"], (0.05, 0.6))]
    (['reached', 'reached', 'diverged'], [True, True])
    """
    Problem.expected(problem)
    if test is not None and not isinstance(test, Problem):
        check.refuse("test", "a steppe.Problem", test, "Pass for example problem.on(x_test, y_test).")
    remedy = "Pass for example goals=[0.01]."
    levels = tuple(check.numbers("goals", goals, above=0.0, rule="a list of at least one loss", remedy=remedy)[::-1])
    start, key = problem.vector(problem.w0 if w is None else w), seed(key)
    checkpoint = None if checkpoint is None else ReadOnce(checkpoint)
    saved = (None if checkpoint is None else checkpoint.load()) or {}
    if critical is None and "rates" in saved:
        critical = restored_critical(part(saved, "extra/"))
    if critical is None and rates is None:
        critical = critical_rate(
            problem, start, losses=levels, flow=flow, checkpoint=checkpoint, progress=progress, key=key
        )
    critical = critical or ()
    # The flow takes no time if the start is already below the goal.
    way = (critical[-1].time or None) if critical and critical[-1].outcome == "reached" else None
    family = None if dynamics is None else Family.of(dynamics)
    if family is not None and (runner is not None or checkpoint is not None):
        remedy = "Give neither, or sweep gradient descent."
        check.refuse("dynamics", "without a runner and a checkpoint", dynamics, remedy)
    limits = Limits(levels, check.integer("steps", steps, minimum=1), way, check.number("patience", patience, above=0))
    if runner is not None:
        bundle = runner(limits)
    elif family is not None:
        bundle = others = Carried(problem, start, limits, family, key)
    else:
        own = Descents(
            problem, start, limits, share=share, together=together, key=key, checkpoint=checkpoint, progress=progress
        )
        own.keep(critical_arrays(critical))
        bundle = own
    kept = _carried_out(bundle, rates, critical, fine=fine, coarse=coarse)
    descents = bundle.run(kept)
    options: dict[str, Any] = {"start": start, "test": test, "all_sharpness": all_sharpness, "key": key}
    ends = ends_table(problem, descents, levels, critical, **options)
    along = flow_row(problem, critical, **options)
    if family is None:
        return Sweep(critical, descents, ends, along)
    return Sweep(critical, descents, _limited(ends, others.stable), along, family.convention)


def _limited(ends: Table, stable: Mapping[tuple[float, float], Mapping[str, float]]) -> Table:
    """The ends with the limits of another dynamics, NaN where a goal was not reached."""
    found = [stable.get((lr, goal), {}) for lr, goal in zip(ends["lr"], ends["goal"], strict=True)]
    names = ["limit", *dict.fromkeys(name for row in found for name in row if name != "limit")]
    return ends | {name: np.array([row.get(name, np.nan) for row in found], dtype=float) for name in names}


def _carried_out(
    bundle: Runner, rates: Sequence[float] | None, critical: tuple[Critical, ...], *, fine: bool, coarse: bool
) -> list[float]:
    """Run the given rates, or those of the plan; returns the rates that belong to the sweep."""
    if rates is not None:
        remedy = "Pass for example rates=[0.01, 0.1], or None."
        wanted = check.numbers("rates", rates, above=0.0, rule="a list of at least one rate", remedy=remedy)
        bundle.run(wanted)
        return wanted
    plan = Plan(critical[-1], fine, coarse)
    while todo := plan.next(bundle.outcomes()):
        # A runner of single runs asks the plan again after each, so it runs nothing beyond a divergence.
        bundle.run(todo if bundle.together else todo[:1])
    return plan.kept(bundle.outcomes())
