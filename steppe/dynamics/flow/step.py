"""One step of the flow: tried, and tried again shorter until its error is what was asked for."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.dynamics.flow import radius as radius_
from steppe.dynamics.flow.method import Attempt, Gradient, Method, estimate
from steppe.dynamics.flow.settle import settle
from steppe.dynamics.flow.state import Point, State
from steppe.problems import Problem

# A step is cut to a tenth at most and grows threefold at most; it aims at 0.85³ of the error allowed.
AIM, SHRINK, GROW = 0.85, 0.1, 3.0

# So many cuts in a row are 1e-16 of the first try or less: nothing is left of the step.
MOST_REJECTIONS = 40

# The error is measured against the way from the start, once that is more than this share of ‖w‖.
LEAST_WAY = 1e-2

# Below so many units of rounding the error of a step is rounding.
ROUNDING = 8

# Steps in a row without a loss lower than ever before, after which a flow that has no end in time has stalled.
MOST_STILL = 100


class Trial(NamedTuple):
    """A step under way: the last attempt at it, where it led, and its error in units of what is allowed."""

    attempt: Attempt
    end: Point
    h: Array  # the length tried
    next_h: Array
    error: Array
    accepted: Array
    radius: radius_.Radius
    gradients: Array
    rejections: Array


def start(origin: Array, w: Array, loss: Array, g: Array, horizon: Array) -> State:
    real = jnp.zeros((), dtype=float)
    point = Point(real, w, loss, g)
    none = jnp.asarray(0, dtype=int)  # with a type of its own: a weak one would compile the loop twice
    return State(origin, point, point, real, radius_.unmeasured(g), none + 1, loss, none, jnp.asarray(False), horizon)


def step(problem: Problem, method: Method, rtol: Array, state: State) -> State:
    """The state after one accepted step; the same state where no step, however short, can be accepted."""
    gradient = jax.value_and_grad(problem.loss)

    def attempt(trial: Trial) -> Trial:
        return _attempt(gradient, method, rtol, state, trial)

    def unfinished(trial: Trial) -> Array:
        return ~trial.accepted & (trial.rejections < MOST_REJECTIONS)

    trial = jax.lax.while_loop(unfinished, attempt, _untried(state))
    moved = _accepted(state, trial)
    # Without a gradient the flow rests: it is at its end at once.
    resting = state._replace(now=state.now._replace(t=state.horizon), before=state.now)
    rests = jnp.all(state.now.g == 0)
    # A step too short to be added to the time is none.
    lost = ~trial.accepted | ~(moved.now.t > state.now.t)
    stuck = (lost & ~rests) | (rests & jnp.isinf(state.horizon))
    moved = _select(rests, resting, moved)
    return _select(stuck, state._replace(stuck=jnp.ones_like(state.stuck)), moved)


def _untried(state: State) -> Trial:
    now, zero = state.now, jnp.zeros_like(state.h)
    error = estimate(now.t - state.before.t, now.w - state.before.w, state.before.g, now.g)
    nothing = Attempt(now.w, now.loss, now.g, error, jnp.asarray(0, dtype=int))
    at_rest = jnp.all(now.g == 0)
    none = jnp.zeros_like(state.gradients)
    return Trial(nothing, now, zero, state.h, zero, at_rest, state.radius, none, none)


def _attempt(gradient: Gradient, method: Method, rtol: Array, state: State, trial: Trial) -> Trial:
    now, radius = state.now, trial.radius
    # A rejected step may have been unstable: measure again before the next one, unless that was done here.
    radius, spent = jax.lax.cond(
        radius.due(now.t) | ((trial.rejections > 0) & (radius.since > 0)),
        lambda r: radius_.measure(lambda w: gradient(w)[1], now.w, now.t, trial.attempt.error, r),
        lambda r: (r, jnp.zeros_like(trial.gradients)),
        radius,
    )
    bound = jnp.maximum(radius.value, np.finfo(now.w.dtype).tiny)
    # The very first step is one that gradient descent could take; where there is no curvature, a short one.
    flat = 1e-3 * (1 + _norm(now.w)) / _norm(now.g)
    first = jnp.where(radius.value > 0, 1 / bound, flat)
    wanted = jnp.minimum(jnp.where(trial.next_h > 0, trial.next_h, first), method.longest(bound))
    left = state.horizon - now.t
    # Two equal steps rather than a long one and a crumb.
    h = jnp.where(wanted >= left, left, jnp.where(2 * wanted > left, left / 2, wanted))
    bound = jnp.maximum(radius.at(now.t + h), bound)
    new = method.attempt(gradient, now.w, now.g, h, bound)
    end = Point(jnp.where(h >= left, state.horizon, now.t + h), new.w, new.loss, new.g)
    off = new.error
    if not method.damps:
        settled, settling = settle(gradient, now, end, radius.value)
        off = off + (_estimate(now, end.w, settled) - _estimate(now, end.w, end))
        end = _select(settled.t <= state.horizon, settled, end)
        spent = spent + settling
    error = _norm(off) / _allowed(rtol, state, new)
    fine = jnp.isfinite(error) & jnp.isfinite(end.loss) & jnp.all(jnp.isfinite(end.g))
    error = jnp.where(fine, error, jnp.inf)
    accepted = error <= 1
    factor = _factor(method.order + 1, error, accepted)
    grown = factor * jnp.where(accepted & (h < wanted), wanted, h)  # a step cut by the horizon says nothing of the next
    return Trial(
        new, end, h, grown, error, accepted, radius,
        trial.gradients + spent + new.gradients, trial.rejections + ~accepted,
    )  # fmt: skip


def _allowed(rtol: Array, state: State, new: Attempt) -> Array:
    """The error that a step may make: as many times as much as it takes gradients, and a share of the way so far.

    The sum of all errors is least, for the gradients in all, where each step's is in proportion to what it costs. And
    what an early error is large or small against is the way so far, not ‖w‖: a network that learns makes it grow.
    """
    numbers = np.finfo(new.w.dtype)
    size = jnp.maximum(jnp.maximum(_norm(state.now.w), _norm(new.w)), numbers.tiny)
    way = jnp.clip(_norm(new.w - state.origin), LEAST_WAY * size, size)
    return jnp.maximum(rtol * new.gradients * way, ROUNDING * numbers.eps * size)


def _factor(power: int, error: Array, accepted: Array) -> Array:
    """How much longer the next step may be.

    From this error alone: where kinks make it jump, its trend, which RKC takes into account, is noise, and steps that
    are rejected for it cost more than it gains where the loss is smooth.
    """
    factor = AIM * jnp.clip(error, 1e-10) ** (-1 / power)
    return jnp.clip(factor, SHRINK, jnp.where(accepted, GROW, 0.5))


def _accepted(state: State, trial: Trial) -> State:
    end = trial.end
    still = jnp.where(end.loss < state.least_loss, 0, state.still + 1)
    radius = trial.radius._replace(since=trial.radius.since + trial.attempt.gradients)
    return State(
        state.origin, end, state.now, trial.next_h, radius,
        state.gradients + trial.gradients, jnp.minimum(state.least_loss, end.loss), still, state.stuck, state.horizon,
    )  # fmt: skip


def _estimate(before: Point, w: Array, now: Point) -> Array:
    """Of the error at `now`, but for the way from `before` to w: that is known better than as a difference."""
    return estimate(now.t - before.t, now.w - w, before.g, now.g)


def _norm(v: Array) -> Array:
    return jnp.sqrt(jnp.sum(v**2)).astype(float)


def _select(condition: Array, a: Any, b: Any) -> Any:
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), a, b)
