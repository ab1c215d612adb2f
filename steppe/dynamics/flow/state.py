"""Where a flow stands: everything that the next step needs, so that a killed run goes on to the bit."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from steppe.dynamics.flow.radius import Radius


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
