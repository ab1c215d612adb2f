"""Whether the error of a step is what it may be, and how long the next one may be."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

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
