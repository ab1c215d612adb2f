"""A sweep of learning rates across the critical one, on any problem."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax import Array

from steppe import check
from steppe.dynamics import Flow
from steppe.dynamics.run import Checkpoint, Progress
from steppe.problems import Problem
from steppe.rates.critical import critical_rate
from steppe.rates.descent import Descent
from steppe.rates.descents import Descents, Limits, Runner
from steppe.rates.ends import Table, ends_table, flow_row
from steppe.rates.flowed import Critical
from steppe.rates.plan import Plan
from steppe.rates.saved import ReadOnce, critical_arrays, restored_critical
from steppe.seed import seed

Reporter = Callable[[Progress], None]


@dataclass(frozen=True)
class Sweep:
    """Gradient descent at every rate, and what its ends are.

    `critical` is the flow to each goal (empty where none was run); `ends` has a row for each rate and each goal it
    reached, and one with NaN for a goal it did not; `flow` has the same columns for the flow's ends.
    """

    critical: tuple[Critical, ...]
    descents: tuple[Descent, ...]
    ends: Table
    flow: Table

    def at(self, goal: float) -> Table:
        """The rows of one goal, in the order of the rates."""
        rows = np.isclose(self.ends["goal"], goal, rtol=1e-9, atol=0)
        if not rows.any():
            known = ", ".join(f"{g:g}" for g in np.unique(self.ends["goal"])[::-1])
            check.refuse("goal", "one of the sweep", goal, f"Its goals are {known}.")
        return {name: column[rows] for name, column in self.ends.items()}


def sweep(
    problem: Problem,
    rates: Sequence[float] | None = None,
    *,
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
    progress: Reporter | None = None,
    key: int | Array = 0,
) -> Sweep:
    """Gradient descent from w (default problem.w0) at each rate until the last of the goals, measured at each goal.

    Without `rates` the flow is run first (or `critical` says what it came to), and its fine and coarse grids are taken,
    on until two neighbouring rates do not reach the goal. Products with ∇²L on the way cost at most `share` of the
    gradients. A run ends at the last goal; where its loss is lost; where it is hopelessly slow (`steppe.rates.doomed`);
    after `patience` times the steps that the flow's time to the goal would take; or after `steps`.

    `together` runs all rates in one compiled loop, the default for small problems: the same numbers, to the bit.
    With a `checkpoint` of the store a killed sweep goes on where it was, to the same result; a `runner` carries out the
    runs elsewhere, in a store for example.

    >>> import jax.numpy as jnp, steppe
    >>> p = Problem(lambda w, x: w[0] * w[1] * x, jnp.array([2.0, 0.1]), jnp.ones(1), jnp.ones(1),
    ...     steppe.losses.half_mse)
    >>> found = sweep(p, [0.05, 0.6, 3.0], goals=[1e-6])
    >>> [d.outcome for d in found.descents], [bool(s * lr <= 2) for s, lr in zip(found.ends["sharpness"], (0.05, 0.6))]
    (['reached', 'reached', 'diverged'], [True, True])
    """
    if not isinstance(problem, Problem):
        check.refuse("problem", "a steppe.Problem", problem, "Build steppe.Problem(predict, params, x, y, loss).")
    if test is not None and not isinstance(test, Problem):
        check.refuse("test", "a steppe.Problem", test, "Pass for example problem.on(x_test, y_test).")
    remedy = "Pass for example goals=[0.01]."
    levels = tuple(check.numbers("goals", goals, above=0.0, rule="a list of at least one loss", remedy=remedy)[::-1])
    start, key = problem.vector(problem.w0 if w is None else w), seed(key)
    checkpoint = None if checkpoint is None else ReadOnce(checkpoint)
    saved = (None if checkpoint is None else checkpoint.load()) or {}
    if critical is None and "rates" in saved:
        critical = restored_critical(saved, prefix="extra/")
    if critical is None and rates is None:
        critical = critical_rate(
            problem, start, losses=levels, flow=flow, checkpoint=checkpoint, progress=progress, key=key
        )
    critical = critical or ()
    # Where the start is below the goal the flow has no way to go.
    way = (critical[-1].time or None) if critical and critical[-1].outcome == "reached" else None
    limits = Limits(levels, check.integer("steps", steps, minimum=1), way, check.number("patience", patience, above=0))
    if runner is not None:
        bundle = runner(limits)
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
    return Sweep(critical, descents, ends, flow_row(problem, critical, **options))


def _carried_out(
    bundle: Runner, rates: Sequence[float] | None, critical: tuple[Critical, ...], *, fine: bool, coarse: bool
) -> list[float]:
    """Runs what the plan asks for, or the rates given; the rates that belong to the sweep."""
    if rates is not None:
        remedy = "Pass for example rates=[0.01, 0.1], or None."
        wanted = check.numbers("rates", rates, above=0.0, rule="a list of at least one rate", remedy=remedy)
        bundle.run(wanted)
        return wanted
    plan = Plan(critical[-1], fine, coarse)
    while todo := plan.next(bundle.outcomes()):
        # One at a time the plan is asked again after each, so that nothing beyond a divergence is run.
        bundle.run(todo if bundle.together else todo[:1])
    return plan.kept(bundle.outcomes())
