"""One step of the flow: it is tried, stiff components settle, its error is judged, and it is accepted or repeated."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.dynamics._flow import radius as radius_
from steppe.dynamics._flow.method import Attempt, Gradient, Method, Past, estimate
from steppe.dynamics._flow.radius import Radius
from steppe.problem import Problem

# A step left stiff components if ‖g‖² at its end is more than EXCESS times its mean along the step; the loss falls by
# ∫‖g‖² dt. At 1.2 they already make up 0.4 of ‖g‖ and most of the estimated error.
EXCESS = 1.1

# A short step was cut for a kink along which the flow slides. Settling steps longer than this part of it would leave
# the kink.
PART = 0.5

# Stiff components are gone once a settling step removes less than the share GONE of ‖g‖², or after MOST steps.
GONE, MOST = 0.2, 10

# The next step is at least SHRINK and at most GROW times as long; it aims at AIM³ of the allowed error.
AIM, SHRINK, GROW = 0.85, 0.1, 3.0

# The error is relative to the distance from the start, or to this share of ‖w‖ if that is larger.
LEAST_WAY = 1e-2

# An error below this many units of rounding is rounding.
ROUNDING = 8

# How to recognise a kink, for steps of at most SHORT/ρ; longer steps do not show it. The error of a smooth loss falls
# at least with the power 1.98 of the step's length (quadratic losses), and its direction, that of w‴, turns by at most
# 50 degrees from step to step. An error that falls with a power below ORDER, or turns by more than 120 degrees, is that
# of a kink.
ORDER, BACK, SHORT = 1.5, -0.5, 2.0

# After a kink was seen, this many steps are judged as steps across a kink.
HELD = 10

# This many cuts in a row leave at most 1e-16 of the first try.
MOST_REJECTIONS = 40

# A step of RKC2 up to STABLE/ρ is stable even if ρ is four times the measured radius. The radius is measured again all
# the same after MOST_SHORT rejections of shorter steps in a row.
STABLE, MOST_SHORT = 0.5, 3

# A flow without an end in time has stalled after this many steps in a row without a new lowest loss.
MOST_STILL = 100


class Point(NamedTuple):
    """w(t) with the loss and the gradient there."""

    t: Array
    w: Array
    loss: Array
    g: Array


class State(NamedTuple):
    """All that the next step needs, so that a killed run resumes to the bit.

    The start of the flow, the point now and the one a step before, the length `h` of the next step, and counters.
    """

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
    kinked: Array  # this many next steps are judged as steps across a kink
    at_kinks: Array  # the gradients of all steps that were judged so
    waves: Array  # ∫ρ dt


def interpolate(before: Point, now: Point, t: Array) -> Array:
    """w at a time between two points, on the cubic with their values and slopes (Hermite)."""
    length = now.t - before.t
    x = jnp.where(length > 0, (t - before.t) / jnp.where(length > 0, length, 1), 1).astype(now.w.dtype)
    length = length.astype(now.w.dtype)
    blend = x * x * (3 - 2 * x)
    slopes = x * (1 - x) * ((1 - x) * before.g - x * now.g)
    return before.w + blend * (now.w - before.w) - length * slopes


def settle(gradient: Gradient, before: Point, now: Point, radius: Array) -> tuple[Point, Array]:
    """Short steps from `now`, until stiff components that the last step left are gone: the point, the gradients.

    The error of the step is judged after them. The point is `now` itself if the step left nothing stiff.
    """
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


class Tolerance(NamedTuple):
    """The error a step may make, relative to the distance so far: for each of its gradients, and across a kink."""

    gradient: Array
    kink: Array


class Allowed(NamedTuple):
    """The error one step may make: if the loss is smooth, and across a kink."""

    smooth: Array
    kink: Array


class Judgement(NamedTuple):
    """Of a step of length h: its error `off`, the same in units of the allowed one, and the length of the next step."""

    h: Array
    off: Array
    error: Array
    accepted: Array
    next_h: Array
    kinked: Array  # this many next steps are judged as steps across a kink


def unjudged(h: Array, kinked: Array, accepted: Array) -> Judgement:
    """Before the first attempt at a step of this length."""
    zero = jnp.zeros_like(h)
    return Judgement(zero, zero, zero, accepted, h, kinked)


def judge(
    off: Array, h: Array, radius: Array, may: Allowed, *, back: Array, order: int, last: Judgement, first: Array
) -> Judgement:
    """Judge an attempt with the error `off`, where the error `may` be as large as allowed.

    `back` says that its error reverses that of the step before. `last` is the attempt before, unless this is the
    `first` one of the step.

    At a kink the gradient jumps: a step across it has the error h times the jump, even if it is short. A flow that
    slides along a kink crosses it at every step. Smooth errors have one sign and add up. Errors of kinks do not: they
    come once for each kink, or each reverses the one before. So one may be as large as all smooth ones together.
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
    # RKC usually uses the trend of the error too. Kinks make the trend noise, and the rejected steps cost more than the
    # trend gains on a smooth loss. After a rejection the step does not grow at once.
    factor = AIM * jnp.clip(error, 1e-10) ** (-1 / jnp.where(loose, 1, order + 1))
    most = jnp.where(accepted, jnp.where(first, GROW, 1.0), 0.5)
    next_h = h * jnp.clip(factor, SHRINK, most)
    bounded = jnp.minimum(next_h, jnp.maximum(h, SHORT / radius))
    return Judgement(h, off, error, accepted, jnp.where(kinked > 0, bounded, next_h), kinked)


def takes_back(off: Array, before: Array, length: Array, radius: Array) -> Array:
    """Whether an error reverses that of the step before, which had this length."""
    product = jnp.sum(off * before).astype(float)
    return (product < BACK * norm(off) * norm(before)) & (length * radius <= SHORT)


def allowed(tolerance: Tolerance, origin: Array, before: Array, w: Array, gradients: Array) -> Allowed:
    """The error that a step to w may make.

    On a smooth loss it is proportional to the gradients of the step and to the distance so far. For a given number of
    gradients, the sum of all errors is least if the error of each step is proportional to its cost. The scale is the
    distance so far and not ‖w‖, because a network that learns amplifies early errors.
    """
    numbers = np.finfo(w.dtype)
    size = jnp.maximum(jnp.maximum(norm(before), norm(w)), numbers.tiny)
    way = jnp.clip(norm(w - origin), LEAST_WAY * size, size)
    smooth = jnp.maximum(tolerance.gradient * gradients * way, ROUNDING * numbers.eps * size)
    return Allowed(smooth, tolerance.kink * way)


def norm(v: Array) -> Array:
    return jnp.sqrt(jnp.sum(v**2)).astype(float)


class Trial(NamedTuple):
    """A step under way: the last attempt, its end, and its judgement."""

    attempt: Attempt
    end: Point
    judgement: Judgement
    radius: radius_.Radius
    gradients: Array
    rejections: Array


def start(origin: Array, w: Array, loss: Array, g: Array, horizon: Array) -> State:
    real = jnp.zeros((), dtype=float)
    point = Point(real, w, loss, g)
    none = jnp.asarray(0, dtype=int)  # a weak type would compile the loop twice
    counted = none + 1, loss, none, jnp.asarray(False), horizon, none, none
    return State(origin, point, point, real, radius_.unmeasured(g), *counted, real)


def step(problem: Problem, method: Method, tolerance: Tolerance, state: State) -> State:
    """The state after one accepted step; the same state if even the shortest step is rejected."""
    gradient = jax.value_and_grad(problem.loss)

    def attempt(trial: Trial) -> Trial:
        return _attempt(gradient, method, tolerance, state, trial)

    def unfinished(trial: Trial) -> Array:
        return ~trial.judgement.accepted & (trial.rejections < MOST_REJECTIONS)

    trial = jax.lax.while_loop(unfinished, attempt, _untried(state))
    moved = _accepted(state, trial)
    # Without a gradient the flow rests: it jumps to its end.
    resting = state._replace(now=state.now._replace(t=state.horizon), before=state.now)
    rests = jnp.all(state.now.g == 0)
    # A step that is too short to change the time is no step.
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
        radius.outdated(now.t) | (_suspect(trial) & (radius.since > 0)),
        lambda r: radius_.measure(lambda w: gradient(w)[1], now.w, now.t, trial.attempt.error, r),
        lambda r: (r, jnp.zeros_like(trial.gradients)),
        radius,
    )
    bound = jnp.maximum(radius.value, np.finfo(now.w.dtype).tiny)
    # The first step is one that gradient descent could take; without curvature, a short one.
    flat = 1e-3 * (1 + norm(now.w)) / norm(now.g)
    first = jnp.where(radius.value > 0, method.first / bound, flat)
    wanted = jnp.minimum(jnp.where(last.next_h > 0, last.next_h, first), method.longest(bound))
    left = state.horizon - now.t
    # Two equal steps are better than a long one and a tiny one.
    h = jnp.where(wanted >= left, left, jnp.where(2 * wanted > left, left / 2, wanted))
    past = Past(state.before.g, now.t - state.before.t)
    new = method.attempt(gradient, now.w, now.g, h, jnp.maximum(radius.at(now.t + h), bound), past)
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
    # A step that the horizon cut does not limit the next one.
    cut = judgement.accepted & (h < wanted)
    judgement = judgement._replace(next_h=judgement.next_h * jnp.where(cut, wanted / h, 1))
    gradients, rejections = trial.gradients + spent + new.gradients, trial.rejections + ~judgement.accepted
    return Trial(new, end, judgement, radius, gradients, rejections)


def _suspect(trial: Trial) -> Array:
    """Whether a rejected step may have been unstable, so that the radius must be measured again.

    A short step is stable even if the radius has grown far; it is rejected for a kink, but not many times in a row.
    """
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
        state.at_kinks + jnp.where(trial.judgement.kinked > 0, trial.gradients, 0),
        state.waves + (end.t - state.now.t) * trial.radius.value,
    )  # fmt: skip


def _last_error(state: State) -> Array:
    """The estimated error of the step before."""
    return _estimate(state.before, state.before.w, state.now)


def _estimate(before: Point, w: Array, now: Point) -> Array:
    """The estimated error at `now`, without the part from `before` to w, which is known better than as a difference."""
    return estimate(now.t - before.t, now.w - w, before.g, now.g)


def _select(condition: Array, a: Any, b: Any) -> Any:
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), a, b)
