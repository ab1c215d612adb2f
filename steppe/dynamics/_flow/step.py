"""One step of the flow: tried, settled, judged, accepted or repeated."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.dynamics._flow import radius as radius_
from steppe.dynamics._flow.method import Attempt, Gradient, Method, estimate
from steppe.dynamics._flow.radius import Radius
from steppe.problem import Problem

# Where a flow stands: everything that the next step needs, so that a killed run goes on to the bit.


class Point(NamedTuple):
    """w(t) with the loss and the gradient there."""

    t: Array
    w: Array
    loss: Array
    g: Array


class State(NamedTuple):
    """Where it began, the point reached and the one a step before, the next step's length, and what else it needs."""

    origin: Array
    now: Point
    before: Point
    h: Array
    radius: Radius
    gradients: Array
    least_loss: Array
    still: Array  # steps since the loss was at its least
    stuck: Array  # no step, however short, is possible
    horizon: Array  # the time at which the flow ends
    kinked: Array  # steps to come whose errors are held to be those of kinks


def interpolate(before: Point, now: Point, t: Array) -> Array:
    """w at a time between two points: the cubic with their values and slopes (Hermite)."""
    length = now.t - before.t
    x = jnp.where(length > 0, (t - before.t) / jnp.where(length > 0, length, 1), 1).astype(now.w.dtype)
    length = length.astype(now.w.dtype)
    blend = x * x * (3 - 2 * x)
    slopes = x * (1 - x) * ((1 - x) * before.g - x * now.g)
    return before.w + blend * (now.w - before.w) - length * slopes


# Short steps after one that has left something in stiff directions, before its error is judged.

# Along a flow the loss falls by ∫‖g‖² dt. Where ‖g‖² at the end of a step is so many times the mean on its way, some of
# it is that of stiff components. It takes little: at 1.2 they have 0.4 of ‖g‖, and most of the estimate of the error.
EXCESS = 1.1

# A short step was cut for a kink along which the flow slides: steps longer than this part of it would leave it.
PART = 0.5

# They are gone when a step no longer takes away this share of ‖g‖², or after so many steps.
GONE, MOST = 0.2, 10


def settle(gradient: Gradient, before: Point, now: Point, radius: Array) -> tuple[Point, Array]:
    """The point after `now`, itself where nothing stiff was left by the step from `before`; and the gradients taken."""
    none = jnp.asarray(0, dtype=int)
    length = now.t - before.t
    stiff = length * _square(now.g) > EXCESS * (before.loss - now.loss)
    h = jnp.minimum(1 / radius, PART * length)

    def body(carry: tuple[Point, Array, Array]) -> tuple[Point, Array, Array]:
        point, _, steps = carry
        w = point.w - h.astype(point.w.dtype) * point.g
        loss, g = gradient(w)
        falls = _square(g) < (1 - GONE) * _square(point.g)
        return Point(point.t + h, w, loss, g), falls, steps + 1

    def goes_on(carry: tuple[Point, Array, Array]) -> Array:
        _, falls, steps = carry
        return falls & (steps < MOST)

    settled, _, steps = jax.lax.while_loop(goes_on, body, (now, stiff & (h > 0), none))
    return settled, steps


def _square(g: Array) -> Array:
    return jnp.sum(g**2).astype(float)


# Whether the error of a step is what it may be, and how long the next one may be.

# A step is cut to a tenth at most and grows threefold at most; it aims at 0.85³ of the error allowed.
AIM, SHRINK, GROW = 0.85, 0.1, 3.0

# The error is measured against the way from the start, once that is more than this share of ‖w‖.
LEAST_WAY = 1e-2

# Below so many units of rounding the error of a step is rounding.
ROUNDING = 8

# Where a step is at most 2/ρ long, the error of a smooth loss falls at least with the 1.98th power of its length
# (quadratic ones), and its direction, that of w‴, turns by 50 degrees at most from one step to the next. One that falls
# with a lower power than this, or turns back by more than 120 degrees, is a kink's. Longer steps tell nothing.
ORDER, BACK, SHORT = 1.5, -0.5, 2.0

# So many steps errors are held to be those of kinks.
HELD = 10


class Tolerance(NamedTuple):
    """What a step may err, in shares of the way so far: for each of its gradients, and across a kink."""

    gradient: Array
    kink: Array


class Allowed(NamedTuple):
    """What one step may err: where all is smooth, and across a kink."""

    smooth: Array
    kink: Array


class Judgement(NamedTuple):
    """Of a step of length h: its error, and in units of what is allowed; how long the next may be."""

    h: Array
    off: Array
    error: Array
    accepted: Array
    next_h: Array
    kinked: Array  # steps to come whose errors are held to be those of kinks


def unjudged(h: Array, kinked: Array, accepted: Array) -> Judgement:
    """Before the first attempt at a step of this length."""
    zero = jnp.zeros_like(h)
    return Judgement(zero, zero, zero, accepted, h, kinked)


def judge(
    off: Array, h: Array, radius: Array, may: Allowed, *, back: Array, order: int, last: Judgement, first: Array
) -> Judgement:
    """Of an attempt that is off by so much, where it `may` be by so much.

    `back`: its error takes back that of the step before. `last` was the attempt before it, unless it is the `first`.

    At a kink the gradient jumps: a step across it is off by h times the jump, however short it is, and one after
    another is where the flow slides along it. Such errors do not add up as smooth ones do, which have one sign: they
    come once a kink, or each takes back the one before. So one of them may be as large as all smooth ones together.
    """
    short = h * radius <= SHORT
    slow = ~first & (last.h * radius <= SHORT) & (off > last.off * (h / jnp.where(first, h, last.h)) ** ORDER)
    seen = short & (slow | back)
    kinked = jnp.where(seen, HELD, last.kinked)
    error = off / may.smooth
    loose = (kinked > 0) & short & (error > 1) & (may.kink > may.smooth)
    error = jnp.where(loose, off / may.kink, error)
    error = jnp.where(jnp.isfinite(error), error, jnp.inf)
    accepted = error <= 1
    # From this error alone: where kinks make it jump, its trend, which RKC takes into account, is noise, and steps that
    # are rejected for it cost more than it gains where the loss is smooth. After a rejection it does not grow at once.
    factor = AIM * jnp.clip(error, 1e-10) ** (-1 / jnp.where(loose, 1, order + 1))
    most = jnp.where(accepted, jnp.where(first, GROW, 1.0), 0.5)
    next_h = h * jnp.clip(factor, SHRINK, most)
    bounded = jnp.minimum(next_h, jnp.maximum(h, SHORT / radius))
    return Judgement(h, off, error, accepted, jnp.where(kinked > 0, bounded, next_h), kinked)


def takes_back(off: Array, before: Array, length: Array, radius: Array) -> Array:
    """Whether an error takes back that of the step before, which was of this length."""
    product = jnp.sum(off * before).astype(float)
    return (product < BACK * norm(off) * norm(before)) & (length * radius <= SHORT)


def allowed(tolerance: Tolerance, origin: Array, before: Array, w: Array, gradients: Array) -> Allowed:
    """The error that a step to w of so many gradients may make.

    Where all is smooth: as many times as much as it takes gradients, and a share of the way so far. The sum of all
    errors is least, for the gradients in all, where each step's is in proportion to what it costs. And what an early
    error is large or small against is the way so far, not ‖w‖: a network that learns makes it grow.
    """
    numbers = np.finfo(w.dtype)
    size = jnp.maximum(jnp.maximum(norm(before), norm(w)), numbers.tiny)
    way = jnp.clip(norm(w - origin), LEAST_WAY * size, size)
    smooth = jnp.maximum(tolerance.gradient * gradients * way, ROUNDING * numbers.eps * size)
    return Allowed(smooth, tolerance.kink * way)


def norm(v: Array) -> Array:
    return jnp.sqrt(jnp.sum(v**2)).astype(float)


# One step of the flow: tried, and tried again shorter until its error is what was asked for.

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
