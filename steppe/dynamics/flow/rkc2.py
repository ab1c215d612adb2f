"""The Runge-Kutta-Chebyshev method of order two (Sommeijer, Shampine and Verwer 1998)."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check
from steppe.dynamics.flow.method import Attempt, Gradient, estimate, norm
from steppe.dynamics.flow.state import Point

# Rounding grows with the square of the stages, and past these many the gain is small beside it.
MOST_STAGES = 256

# Stable for h ρ ≤ STABLE (s² − 1): 2/3 (1 − 2ε/15) with the damping ε = 2/13 of the polynomials.
DAMPING = 2 / 13
STABLE = 0.653

# The spectral radius comes from few Lanczos steps, which see it from below, may grow within the step, and does not know
# of kinks.
SAFETY = 1.15


@dataclass(frozen=True)
class RKC2:
    """s gradients for a step of 0.65 (s² − 1)/ρ: s is chosen so that the step that the error allows is stable.

    The stability polynomial is 1 − b_s T_s(w₀) + b_s T_s(w₀ + w₁z), T_s the Chebyshev polynomial: real spectra, such
    as that of a gradient flow, are what it is made for.

    `past_kinks` leaves that part of the error uncontrolled that is of first order in the step (see `mendable`), but for
    steps that climb, as no flow does. On ReLU networks it is most of the error: a fraction of the gradients then ends 2
    to 8% of ‖w‖ from the flow, which is as well as w is known where hundreds of kinks are met, but not where it slides
    along a few.
    """

    most_stages: int = MOST_STAGES
    order: int = 2
    past_kinks: bool = False

    def __post_init__(self) -> None:
        check.integer("most_stages", self.most_stages, minimum=self.fewest_stages)

    @property
    def fewest_stages(self) -> int:
        """Of two stages only the last is of second order: there is none to compare it with."""
        return 3 if self.past_kinks else 2

    def longest(self, radius: Array) -> Array:
        return STABLE * (self.most_stages**2 - 1) / (SAFETY * radius)

    def stages(self, h: Array, radius: Array) -> Array:
        s = jnp.ceil(jnp.sqrt(1 + SAFETY * h * radius / STABLE))
        return jnp.clip(s, self.fewest_stages, self.most_stages).astype(int)

    def attempt(self, gradient: Gradient, start: Point, h: Array, radius: Array) -> Attempt:
        w, g, s = start.w, start.g, self.stages(h, radius)
        table = jnp.asarray(coefficients(self.most_stages))
        first = s * (s - 1) // 2 - 1  # the row of stage 1 of the method of s stages
        halfway = jnp.round(s / 2**0.5).astype(int)  # stage j lies at the time (j/s)² h or so

        def stage(j: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
            """Displacements from w, not positions: rounding is then relative to the step, not to w."""
            d, before, g_last, _, half = carry
            mu, nu, weight, weight0, c = (c.astype(w.dtype) for c in table[first + j - 1])
            d_next = mu * d + nu * before - h.astype(w.dtype) * (weight * g_last + weight0 * g)
            loss, g_next = gradient(w + d_next)
            half = jnp.where(j == halfway, norm(estimate(c * h, d_next, g, g_next)), half)
            return d_next, d, g_next, loss, half

        zero, none = jnp.zeros_like(w), jnp.zeros((), w.dtype)
        d, _, g_end, loss, half = jax.lax.fori_loop(1, s + 1, stage, (zero, zero, g, none, none))
        error = estimate(h, d, g, g_end)
        size = norm(error)
        if self.past_kinks:
            part = mendable(size, half, table[first + halfway - 1, 4].astype(w.dtype))
            size = jnp.where(loss > start.loss, size, part)
        return Attempt(w + d, loss, g_end, error, size, s)


def mendable(whole: Array, part: Array, c: Array) -> Array:
    """The part that is of third order in the length of the step, from the errors of a step h and of its first part ch.

    What kinks and stiff directions do to a step is as large as the step, and two steps of half the length do it twice:
    shorter ones cost more and mend nothing. The squares of both parts add up to that of the error,
    K²h² + S²h⁶ = e² and K²(ch)² + S²(ch)⁶ = e_c².

    >>> float(mendable(jnp.array(1.0), jnp.array(0.125), jnp.array(0.5)))   # a smooth flow: all of it
    1.0
    >>> float(mendable(jnp.array(1.0), jnp.array(0.5), jnp.array(0.5)))     # kinks only: nothing
    0.0
    """
    return jnp.sqrt(jnp.maximum(whole**2 - (part / c) ** 2, 0) / (1 - c**4))


@lru_cache(maxsize=4)
def coefficients(most_stages: int) -> NDArray[Any]:
    """Rows (μ_j, ν_j, μ̃_j, γ̃_j, c_j) for the stages j = 1..s of the methods with s = 2, 3, ... stages, in this order.

    Stage j is of second order at the time c_j h, but for the first. In double precision whatever that of w: w₀ − 1 is
    as small as 1e-6.
    """
    return np.concatenate([_rows(s) for s in range(2, most_stages + 1)])


def _rows(s: int) -> NDArray[Any]:
    w0 = 1 + DAMPING / s**2
    T, dT, ddT = np.zeros((3, s + 1))  # T_j, T′_j and T″_j at w₀
    T[:2], dT[1] = (1, w0), 1
    for j in range(2, s + 1):
        T[j] = 2 * w0 * T[j - 1] - T[j - 2]
        dT[j] = 2 * w0 * dT[j - 1] + 2 * T[j - 1] - dT[j - 2]
        ddT[j] = 2 * w0 * ddT[j - 1] + 4 * dT[j - 1] - ddT[j - 2]
    w1 = dT[s] / ddT[s]
    b = np.empty(s + 1)
    b[2:] = ddT[2:] / dT[2:] ** 2
    b[:2] = b[2]
    a = 1 - b * T
    mu, nu, weight = 2 * w0 * b[2:] / b[1:-1], -b[2:] / b[:-2], 2 * w1 * b[2:] / b[1:-1]
    c = w1 * ddT[2:] / dT[2:]
    later = np.stack([mu, nu, weight, -a[1:-1] * weight, c], axis=1)
    return np.vstack([[0.0, 0.0, b[1] * w1, 0.0, b[1] * w1], later])
