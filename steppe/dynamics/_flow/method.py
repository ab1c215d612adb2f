"""Explicit methods for the gradient flow: stabilised Runge-Kutta-Chebyshev (RKC2), RK4, and Adams-Bashforth (AB2)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpy.typing import NDArray

from steppe import check

# Rounding grows with the square of the stages; with more stages than these the gain is small in comparison.
MOST_STAGES = 256

# RKC2 is stable for h ρ ≤ STABLE (s² − 1): 2/3 (1 − 2ε/15) with the damping ε = 2/13 of the polynomials.
DAMPING = 2 / 13
STABLE = 0.653

# The measured spectral radius comes from few Lanczos steps, which approach it from below; it may grow within the step,
# and it does not see kinks.
SAFETY = 1.15

# w ↦ (L(w), ∇L(w)).
Gradient = Callable[[Array], tuple[Array, Array]]


class Attempt(NamedTuple):
    """The end of a step, the loss and the gradient there, an estimate of its error, and the gradients it cost."""

    w: Array
    loss: Array
    g: Array
    error: Array
    gradients: Array


class Past(NamedTuple):
    """The gradient a step before, and the length of that step; 0 before the first step."""

    g: Array
    h: Array


def estimate(h: Array, moved: Array, g: Array, g_end: Array) -> Array:
    """The error of a step of RKC2, h³w‴/15, from both its ends."""
    return 0.8 * moved + 0.4 * h.astype(moved.dtype) * (g + g_end)


class Method(Protocol):
    """How far a step may go, and where it leads."""

    @property
    def order(self) -> int: ...

    @property
    def damps(self) -> bool:
        """Whether a step leaves little of the stiff components."""
        ...

    @property
    def first(self) -> float:
        """The length of the first step, as a share of 1/ρ."""
        ...

    def longest(self, radius: Array) -> Array:
        """The longest stable step, if the spectral radius of ∇²L was measured as `radius`."""
        ...

    def attempt(self, gradient: Gradient, w: Array, g: Array, h: Array, radius: Array, past: Past) -> Attempt:
        """A step of length h from w, where the gradient is g."""
        ...


@dataclass(frozen=True)
class RK4:
    """The classical method with the step α/ρ and four gradients a step, without error control.

    Cohen et al. 2021 take α = 1; it is stable up to 2.78.
    """

    alpha: float = 1.0
    order: int = 4
    damps: bool = True
    first: float = 1.0

    def __post_init__(self) -> None:
        check.number("alpha", self.alpha, above=0.0)

    def longest(self, radius: Array) -> Array:
        return self.alpha / radius

    def attempt(self, gradient: Gradient, w: Array, g: Array, h: Array, radius: Array, past: Past) -> Attempt:
        h = h.astype(w.dtype)

        def stage(i: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
            """The gradient of stage i + 1, and the sum of those before with weights ⅙, ⅓, ⅓, ⅙; stage 4 is the end."""
            total, g_last, _, _ = carry
            total = total + weights[i] * g_last
            at = w - h * jnp.where(i == 3, total, lengths[i] * g_last)
            loss, g_next = gradient(at)
            return total, g_next, loss, at

        weights = jnp.asarray(np.array([1 / 6, 1 / 3, 1 / 3, 1 / 6]), w.dtype)
        lengths = jnp.asarray(np.array([0.5, 0.5, 1.0, 0.0]), w.dtype)
        start = (jnp.zeros_like(w), g, jnp.zeros((), w.dtype), w)
        _, g_end, loss, end = jax.lax.fori_loop(0, 4, stage, start)
        return Attempt(end, loss, g_end, jnp.zeros_like(w), jnp.asarray(4, dtype=int))


@final
class AB2(eqx.Module):
    """The method of Adams and Bashforth of order two: steps α/ρ of one gradient, without error control.

    w ← w − h((1 + r/2) g − (r/2) g₋), where g₋ is the gradient a step before and r the ratio of the two steps. It is
    stable for α < 1. At a kink, where the gradient jumps, the error of any method is a part of the step times the jump.
    It depends on the place of the kink within the step: in the root mean square it is 0.29 here and 0.17 for RK4. A
    step is one gradient here and four there, so that this error is 2.3 times smaller for the same gradients.
    """

    alpha: Array
    order: int = eqx.field(static=True, default=2)
    damps: bool = eqx.field(static=True, default=True)
    first: float = eqx.field(static=True, default=1 / 64)

    def __init__(self, alpha: ArrayLike = 0.5):
        if not isinstance(alpha, Array):
            check.number("alpha", alpha, above=0.0)
        self.alpha = jnp.asarray(alpha, dtype=float)

    def longest(self, radius: Array) -> Array:
        return self.alpha / radius

    def attempt(self, gradient: Gradient, w: Array, g: Array, h: Array, radius: Array, past: Past) -> Attempt:
        half = jnp.where(past.h > 0, 0.5 * h / jnp.where(past.h > 0, past.h, 1), 0).astype(w.dtype)
        end = w - h.astype(w.dtype) * ((1 + half) * g - half * past.g)
        loss, g_end = gradient(end)
        return Attempt(end, loss, g_end, jnp.zeros_like(w), jnp.asarray(1, dtype=int))


@dataclass(frozen=True)
class RKC2:
    """The Runge-Kutta-Chebyshev method of order two (Sommeijer, Shampine and Verwer 1998).

    A step of 0.65 (s² − 1)/ρ takes s gradients; s is the least with which the step that the error allows is stable.
    The stability polynomial is 1 − b_s T_s(w₀) + b_s T_s(w₀ + w₁z), with the Chebyshev polynomial T_s: it suits real
    spectra such as that of a gradient flow.
    """

    most_stages: int = MOST_STAGES
    order: int = 2
    damps: bool = False
    first: float = 1.0

    def __post_init__(self) -> None:
        check.integer("most_stages", self.most_stages, minimum=2)

    def longest(self, radius: Array) -> Array:
        return STABLE * (self.most_stages**2 - 1) / (SAFETY * radius)

    def stages(self, h: Array, radius: Array) -> Array:
        s = jnp.ceil(jnp.sqrt(1 + SAFETY * h * radius / STABLE))
        return jnp.clip(s, 2, self.most_stages).astype(int)

    def attempt(self, gradient: Gradient, w: Array, g: Array, h: Array, radius: Array, past: Past) -> Attempt:
        s = self.stages(h, radius)
        table = jnp.asarray(coefficients(self.most_stages))
        first = s * (s - 1) // 2 - 1  # the row of stage 1 of the method of s stages

        def stage(j: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
            """Displacements from w instead of positions, so that rounding is relative to the step."""
            d, before, g_last, _ = carry
            mu, nu, weight, weight0 = (c.astype(w.dtype) for c in table[first + j - 1])
            d_next = mu * d + nu * before - h.astype(w.dtype) * (weight * g_last + weight0 * g)
            loss, g_next = gradient(w + d_next)
            return d_next, d, g_next, loss

        zero = jnp.zeros_like(w)
        d, _, g_end, loss = jax.lax.fori_loop(1, s + 1, stage, (zero, zero, g, jnp.zeros((), w.dtype)))
        return Attempt(w + d, loss, g_end, estimate(h, d, g, g_end), s)


@lru_cache(maxsize=4)
def coefficients(most_stages: int) -> NDArray[Any]:
    """Rows (μ_j, ν_j, μ̃_j, γ̃_j) for the stages j = 1..s of the methods with s = 2, 3, ... stages, one after another.

    In double precision for every w, because w₀ − 1 can be as small as 1e-6.
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
    later = np.stack([mu, nu, weight, -a[1:-1] * weight], axis=1)
    return np.vstack([[0.0, 0.0, b[1] * w1, 0.0], later])
