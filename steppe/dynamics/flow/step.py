"""One step of the flow: tried, and tried again shorter until its error is what was asked for."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from steppe.dynamics.flow import radius as radius_
from steppe.dynamics.flow.method import Attempt, Gradient, Method
from steppe.dynamics.flow.state import Point, State
from steppe.problems import Problem

# A step is cut to a tenth at most and grows tenfold at most; it aims at 0.8³ of the error allowed.
AIM, SHRINK, GROW = 0.8, 0.1, 10.0

# So many cuts in a row are 1e-16 of the first try or less: nothing is left of the step.
MOST_REJECTIONS = 40

# Steps in a row that change w by no more than rounding, and do not lower the loss, after which the flow has stalled.
MOST_STILL = 10
ROUNDING = 4.0


class Trial(NamedTuple):
    """A step under way: the last attempt at it, with its error in units of what is allowed."""

    attempt: Attempt
    h: Array  # the length tried
    next_h: Array
    error: Array
    accepted: Array
    radius: radius_.Radius
    gradients: Array
    rejections: Array


def start(problem: Problem, w: Array, horizon: float) -> State:
    loss, g = jax.value_and_grad(problem.loss)(w)
    real = jnp.zeros((), dtype=float)
    point = Point(real, w, loss, g)
    due = jnp.asarray(1)
    radius = radius_.Radius(real, radius_.first_vector(g), due, due)
    zero = jnp.asarray(0)
    return State(point, point, real, real, real, radius, due, zero, jnp.asarray(horizon, dtype=float))


def step(problem: Problem, method: Method, rtol: Array, state: State) -> State:
    """The state after one accepted step; the same state where no step, however short, can be accepted."""
    gradient = jax.value_and_grad(problem.loss)

    def attempt(trial: Trial) -> Trial:
        return _attempt(gradient, method, rtol, state, trial)

    def unfinished(trial: Trial) -> Array:
        return ~trial.accepted & (trial.rejections < MOST_REJECTIONS)

    trial = jax.lax.while_loop(unfinished, attempt, _untried(gradient, state))
    moved = _accepted(state, trial)
    # Without a gradient the flow rests: it is at its end at once.
    resting = state._replace(now=state.now._replace(t=state.horizon), before=state.now)
    rests = jnp.all(state.now.g == 0)
    stuck = ~trial.accepted | (rests & jnp.isinf(state.horizon))
    moved = _select(rests, resting, moved)
    return _select(stuck, state._replace(still=jnp.full_like(state.still, MOST_STILL)), moved)


def _untried(gradient: Gradient, state: State) -> Trial:
    now = state.now
    radius, gradients = jax.lax.cond(
        state.radius.due,
        lambda r: radius_.measure(lambda w: gradient(w)[1], now.w, r),
        lambda r: (r, jnp.zeros_like(state.gradients)),
        state.radius,
    )
    # The very first step is one that gradient descent could take; where there is no curvature, a short one.
    tiny = jnp.finfo(now.w.dtype).tiny
    flat = 1e-3 * (1 + _norm(now.w)) / jnp.maximum(_norm(now.g), tiny)
    first = jnp.where(radius.value > 0, 1 / jnp.maximum(radius.value, tiny), flat)
    h = jnp.where(state.h > 0, state.h, first)
    nothing = Attempt(now.w, now.loss, now.g, jnp.zeros_like(now.w), jnp.asarray(0))
    at_rest = jnp.all(now.g == 0)
    return Trial(nothing, jnp.zeros_like(h), h, jnp.zeros_like(h), at_rest, radius, gradients, jnp.asarray(0))


def _attempt(gradient: Gradient, method: Method, rtol: Array, state: State, trial: Trial) -> Trial:
    now, radius = state.now, trial.radius
    # A rejected step may have been unstable: measure again before the next one, unless that was done here.
    radius, spent = jax.lax.cond(
        (trial.rejections > 0) & (radius.age > 0),
        lambda r: radius_.measure(lambda w: gradient(w)[1], now.w, r),
        lambda r: (r, jnp.zeros_like(trial.gradients)),
        radius,
    )
    bound = jnp.maximum(radius.value, jnp.finfo(now.w.dtype).tiny)
    wanted = jnp.minimum(trial.next_h, method.longest(bound))
    left = state.horizon - now.t
    # Two equal steps rather than a long one and a crumb.
    h = jnp.where(wanted >= left, left, jnp.where(2 * wanted > left, left / 2, wanted))
    new = method.attempt(gradient, now.w, now.g, h, bound)
    size = jnp.maximum(jnp.maximum(_norm(now.w), _norm(new.w)), jnp.finfo(now.w.dtype).tiny)
    error = _norm(new.error) / (rtol * size)
    fine = jnp.isfinite(error) & jnp.isfinite(new.loss) & jnp.all(jnp.isfinite(new.g))
    error = jnp.where(fine, error, jnp.inf)
    accepted = error <= 1
    factor = _factor(method.order + 1, error, h, accepted, state)
    grown = factor * jnp.where(accepted & (h < wanted), wanted, h)  # a step cut by the horizon says nothing of the next
    return Trial(
        new, h, grown, error, accepted, radius,
        trial.gradients + spent + new.gradients, trial.rejections + ~accepted,
    )  # fmt: skip


def _factor(power: int, error: Array, h: Array, accepted: Array, state: State) -> Array:
    """How much longer the next step may be: from this error, and from its trend after an accepted step."""
    floor = 1e-10
    error, last = jnp.clip(error, floor), jnp.clip(state.last_error, floor)
    plain = AIM * error ** (-1 / power)
    trend = plain * (h / jnp.where(state.last_h > 0, state.last_h, 1)) * (last / error) ** (1 / power)
    factor = jnp.where(accepted & (state.last_h > 0), trend, plain)
    return jnp.where(accepted, jnp.clip(factor, SHRINK, GROW), jnp.clip(factor, SHRINK, 0.5))


def _accepted(state: State, trial: Trial) -> State:
    now, new = state.now, trial.attempt
    t = jnp.where(trial.h >= state.horizon - now.t, state.horizon, now.t + trial.h)
    rounding = ROUNDING * jnp.finfo(now.w.dtype).eps
    still = (_norm(new.w - now.w) <= rounding * _norm(now.w)) & (new.loss >= now.loss)
    radius = trial.radius._replace(age=trial.radius.age + 1)
    return State(
        Point(t, new.w, new.loss, new.g), now, trial.next_h, trial.h, trial.error, radius,
        state.gradients + trial.gradients, jnp.where(still, state.still + 1, 0), state.horizon,
    )  # fmt: skip


def _norm(v: Array) -> Array:
    return jnp.sqrt(jnp.sum(v**2)).astype(float)


def _select(condition: Array, a: Any, b: Any) -> Any:
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), a, b)
