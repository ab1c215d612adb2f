"""One step of the flow: tried, and tried again shorter until its error is what was asked for."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.dynamics.flow import radius as radius_
from steppe.dynamics.flow.judge import Judgement, Tolerance, allowed, judge, norm, takes_back, unjudged
from steppe.dynamics.flow.method import Attempt, Gradient, Method, estimate
from steppe.dynamics.flow.settle import settle
from steppe.dynamics.flow.state import Point, State
from steppe.problems import Problem

# So many cuts in a row are 1e-16 of the first try or less: nothing is left of the step.
MOST_REJECTIONS = 40

# A step of RKC2 of up to this length, in 1/ρ, is stable even where ρ is four times what was measured; after so many
# rejections of shorter ones in a row the radius is doubted all the same.
STABLE, MOST_SHORT = 0.5, 3

# Steps in a row without a loss lower than ever before, after which a flow that has no end in time has stalled.
MOST_STILL = 100


class Trial(NamedTuple):
    """A step under way: the last attempt at it, where it led, and what was made of it."""

    attempt: Attempt
    end: Point
    judgement: Judgement
    radius: radius_.Radius
    gradients: Array
    rejections: Array


def start(origin: Array, w: Array, loss: Array, g: Array, horizon: Array) -> State:
    real = jnp.zeros((), dtype=float)
    point = Point(real, w, loss, g)
    none = jnp.asarray(0, dtype=int)  # with a type of its own: a weak one would compile the loop twice
    return State(
        origin, point, point, real, radius_.unmeasured(g), none + 1, loss, none, jnp.asarray(False), horizon, none
    )


def step(problem: Problem, method: Method, tolerance: Tolerance, state: State) -> State:
    """The state after one accepted step; the same state where no step, however short, can be accepted."""
    gradient = jax.value_and_grad(problem.loss)

    def attempt(trial: Trial) -> Trial:
        return _attempt(gradient, method, tolerance, state, trial)

    def unfinished(trial: Trial) -> Array:
        return ~trial.judgement.accepted & (trial.rejections < MOST_REJECTIONS)

    trial = jax.lax.while_loop(unfinished, attempt, _untried(state))
    moved = _accepted(state, trial)
    # Without a gradient the flow rests: it is at its end at once.
    resting = state._replace(now=state.now._replace(t=state.horizon), before=state.now)
    rests = jnp.all(state.now.g == 0)
    # A step too short to be added to the time is none.
    lost = ~trial.judgement.accepted | ~(moved.now.t > state.now.t)
    stuck = (lost & ~rests) | (rests & jnp.isinf(state.horizon))
    moved = _select(rests, resting, moved)
    return _select(stuck, state._replace(stuck=jnp.ones_like(state.stuck)), moved)


def _untried(state: State) -> Trial:
    now = state.now
    nothing = Attempt(now.w, now.loss, now.g, _last_error(state), jnp.asarray(0, dtype=int))
    at_rest = jnp.all(now.g == 0)
    none = jnp.zeros_like(state.gradients)
    return Trial(nothing, now, unjudged(state.h, state.kinked, at_rest), state.radius, none, none)


def _attempt(gradient: Gradient, method: Method, tolerance: Tolerance, state: State, trial: Trial) -> Trial:
    now, radius, last = state.now, trial.radius, trial.judgement
    radius, spent = jax.lax.cond(
        radius.due(now.t) | (_suspect(trial) & (radius.since > 0)),
        lambda r: radius_.measure(lambda w: gradient(w)[1], now.w, now.t, trial.attempt.error, r),
        lambda r: (r, jnp.zeros_like(trial.gradients)),
        radius,
    )
    bound = jnp.maximum(radius.value, np.finfo(now.w.dtype).tiny)
    # The very first step is one that gradient descent could take; where there is no curvature, a short one.
    flat = 1e-3 * (1 + norm(now.w)) / norm(now.g)
    first = jnp.where(radius.value > 0, 1 / bound, flat)
    wanted = jnp.minimum(jnp.where(last.next_h > 0, last.next_h, first), method.longest(bound))
    left = state.horizon - now.t
    # Two equal steps rather than a long one and a crumb.
    h = jnp.where(wanted >= left, left, jnp.where(2 * wanted > left, left / 2, wanted))
    new = method.attempt(gradient, now.w, now.g, h, jnp.maximum(radius.at(now.t + h), bound))
    end = Point(jnp.where(h >= left, state.horizon, now.t + h), new.w, new.loss, new.g)
    off = new.error
    if not method.damps:
        settled, settling = settle(gradient, now, end, radius.value)
        off = off + (_estimate(now, end.w, settled) - _estimate(now, end.w, end))
        end = _select(settled.t <= state.horizon, settled, end)
        spent = spent + settling
    fine = jnp.isfinite(end.loss) & jnp.all(jnp.isfinite(end.g))
    may = allowed(tolerance, state.origin, now.w, new.w, new.gradients)
    back = takes_back(off, _last_error(state), now.t - state.before.t, bound)
    size, first_try = jnp.where(fine, norm(off), jnp.inf), trial.rejections == 0
    judgement = judge(size, h, bound, may, back=back, order=method.order, last=last, first=first_try)
    # A step cut by the horizon says nothing of the next.
    cut = judgement.accepted & (h < wanted)
    judgement = judgement._replace(next_h=judgement.next_h * jnp.where(cut, wanted / h, 1))
    gradients, rejections = trial.gradients + spent + new.gradients, trial.rejections + ~judgement.accepted
    return Trial(new, end, judgement, radius, gradients, rejections)


def _suspect(trial: Trial) -> Array:
    """A rejected step may have been unstable: then the radius is measured again, unless that was done here. A short one
    is stable even where the radius has grown by far, and is rejected for a kink; but not again and again."""
    last = trial.judgement
    long = last.h * trial.radius.value > STABLE
    return (trial.rejections > 0) & (long | (trial.rejections >= MOST_SHORT) | ~jnp.isfinite(last.error))


def _accepted(state: State, trial: Trial) -> State:
    end = trial.end
    still = jnp.where(end.loss < state.least_loss, 0, state.still + 1)
    radius = trial.radius._replace(since=trial.radius.since + trial.attempt.gradients)
    return State(
        state.origin, end, state.now, trial.judgement.next_h, radius,
        state.gradients + trial.gradients, jnp.minimum(state.least_loss, end.loss), still, state.stuck, state.horizon,
        jnp.maximum(trial.judgement.kinked - 1, 0),
    )  # fmt: skip


def _last_error(state: State) -> Array:
    """Of the step before, estimated."""
    return _estimate(state.before, state.before.w, state.now)


def _estimate(before: Point, w: Array, now: Point) -> Array:
    """Of the error at `now`, but for the way from `before` to w: that is known better than as a difference."""
    return estimate(now.t - before.t, now.w - w, before.g, now.g)


def _select(condition: Array, a: Any, b: Any) -> Any:
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), a, b)
