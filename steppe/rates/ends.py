"""The table of a sweep: one row for each rate and goal."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe.problems import Problem
from steppe.rates.descent import Descent, Reached
from steppe.rates.flowed import Critical
from steppe.rates.measured import everything
from steppe.rates.smoothed import smoothed_maximum

Table = dict[str, NDArray[Any]]
OUTCOMES = ("reached", "exhausted", "diverged", "stalled")
_ALONG = ("steps", "largest_sharpness", "smoothed_sharpness")


def ends_table(
    problem: Problem, descents: Sequence[Descent], goals: Sequence[float], critical: Sequence[Critical], *,
    start: Array, test: Problem | None, all_sharpness: bool, key: int,
) -> Table:  # fmt: skip
    """Everything measured where each rate reached each goal. `all_sharpness` is measured at the last goal only."""
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
        # The columns are there whatever was reached; the start tells their names.
        flow_end = start if flow_ends else None
        names = everything(problem, start, start, flow_end=flow_end, all_sharpness=all_sharpness, **options)
        rows[0] |= dict.fromkeys((*_ALONG, *names), np.nan)
    return stacked(rows)


def path_numbers(descent: Descent, point: Reached) -> dict[str, float]:
    """The run up to the point where it reached a goal: steps, and its sharpness as followed: largest, smoothed."""
    records = descent.records
    steps = records["step"]
    until = steps <= point.step
    sharpness = records["sharpness"][until]
    largest, smoothed = float(np.nanmax(sharpness)), smoothed_maximum(steps[until], sharpness)
    return dict(zip(_ALONG, (float(point.step), largest, smoothed), strict=True))


def flow_row(
    problem: Problem, critical: Sequence[Critical], *, start: Array, test: Problem | None, all_sharpness: bool, key: int
) -> Table:
    """The same columns at the ends of the flow, one row a goal; the centre of a flow is its end."""
    return stacked(
        {"goal": c.loss, "time": c.time, "largest_sharpness": c.largest_sharpness,
         "initial_sharpness": c.initial_sharpness, "critical": c.rate, "gradients": float(c.gradients),
         "outcome": float(OUTCOMES.index(c.outcome))}
        | everything(problem, c.w, c.w, start=start, test=test, flow_end=None, key=key,
                     all_sharpness=all_sharpness and c is critical[-1])
        for c in critical
    )  # fmt: skip


def stacked(rows: Iterable[dict[str, float]]) -> Table:
    """Rows as columns; NaN where a row has no such number."""
    rows = list(rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: np.array([row.get(name, np.nan) for row in rows], dtype=float) for name in names}
