"""Short steps after one that has left something in stiff directions, before its error is judged.

A long step damps stiff components by little, and a kink within it excites them: w may be near the flow, to the error
asked for, and still lie so far up a steep wall that loss, gradient and sharpness are not those of the flow. Within 1/ρ,
ρ the spectral radius, the flow itself would be down again; a few steps of descent of that length are. An estimate of
the error from the gradient at the end sees such a component hρ times too large: it is taken after these steps.
"""

import jax
import jax.numpy as jnp
from jax import Array

from steppe.dynamics.flow.method import Gradient
from steppe.dynamics.flow.state import Point

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
