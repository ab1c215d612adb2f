"""The critical learning rate η_c = 2/s_GF of conflicting-biases (section 2), from one gradient flow."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax import Array

from steppe import check, until, when
from steppe.dynamics import Flow, Run, run
from steppe.dynamics.run import Checkpoint, Progress
from steppe.problems import Problem
from steppe.rates.flowed import Critical
from steppe.rates.followed import Followed
from steppe.rates.saved import Follow, Legs
from steppe.seed import seed

# Along the flow sharpness changes by little in 2% more of its steps: products would cost more than gradients at each.
_LOOKS = when.logarithmic(per_decade=116)

# Sharpness along the flow is then known to some tenths of a per cent, also where kinks make the most of the error: on
# MNIST-5k 1e-2 was 1.7% off.
_RTOL = 3e-3


def critical_rate(
    problem: Problem,
    w: Any = None,
    *,
    losses: Sequence[float] = (1e-1, 1e-2, 1e-3),
    flow: Flow | None = None,
    stop: until.Stop | None = None,
    checkpoint: Checkpoint | None = None,
    progress: Callable[[Progress], None] | None = None,
    key: int | Array = 0,
) -> tuple[Critical, ...]:
    """s₀, s_GF and η_c for each of the losses, the largest first, from one gradient flow that starts at w.

    The sharpness is measured along the flow (default rtol 3e-3), at steps that are at most 2% of those done apart, and
    where a loss is reached. `stop` ends the flow to each next loss earlier, after until.seconds(60) for example. With a
    `checkpoint` of the store a killed flow goes on where it was, to the same result. `progress` hears of it on the way.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: w[0] * w[1] * x, jnp.array([0.5, 0.5]), jnp.ones(1), jnp.ones(1),
    ...     steppe.losses.half_mse)
    >>> (c,) = critical_rate(p, losses=[1e-8])                       # ends near w₁ = w₂ = 1 with sharpness w₁² + w₂²
    >>> round(c.largest_sharpness, 2), round(c.rate, 2)
    (2.0, 1.0)
    """
    if not isinstance(problem, Problem):
        check.refuse("problem", "a steppe.Problem", problem, "Build steppe.Problem(predict, params, x, y, loss).")
    if flow is not None and not isinstance(flow, Flow):
        check.refuse("flow", "a steppe.dynamics.Flow", flow, "Pass for example Flow(rtol=1e-3).")
    if stop is not None and not isinstance(stop, until.Stop):
        check.refuse("stop", "a condition of steppe.until", stop, "Pass for example steppe.until.seconds(60).")
    goals = check.numbers("losses", losses, rule="a list of at least one loss", remedy="Pass for example [0.01].")[::-1]
    w = problem.vector(problem.w0 if w is None else w)
    key = seed(key)
    follow = Follow(Followed.fresh(problem, key=key))
    legs = None if checkpoint is None else Legs(checkpoint, follow)
    found = [] if legs is None else list(legs.done)
    flow = flow or Flow(_RTOL)
    flow = Flow(flow.rtol, method=flow.method, origin=w if flow.origin is None else flow.origin)
    for goal in goals[len(found) :]:
        # Each leg goes on where the one before ended; only the length of its first step is found anew.
        condition = until.loss(goal) if stop is None else until.loss(goal) | stop
        before = found[-1] if found else None
        leg = run(
            problem, flow, w if before is None else before.w, stop=condition, record={"sharpness": follow},
            when=_LOOKS, checkpoint=legs, progress=progress, key=key,
        )  # fmt: skip
        found.append(_after(leg, goal, before))
        if legs is not None:
            legs.done = tuple(found)
        if leg.outcome != "reached":
            break
    return tuple(found)


def _after(leg: Run, goal: float, before: Critical | None) -> Critical:
    """What the flow came to at the end of a leg, the legs before it included."""
    sharpness = leg.records.get("sharpness", np.array([np.nan]))
    elapsed = float(leg.records["time"][-1]) if leg.records else 0.0
    largest, initial, gradients = float(sharpness.max()), float(sharpness[0]), leg.gradients
    if before is not None:
        largest, initial = max(largest, before.largest_sharpness), before.initial_sharpness
        elapsed, gradients = elapsed + before.time, gradients + before.gradients
    return Critical(goal, leg.outcome, leg.w, elapsed, float(sharpness[-1]), initial, largest, gradients)
