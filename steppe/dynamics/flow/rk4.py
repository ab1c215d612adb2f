"""The classical Runge-Kutta method at the edge of its stability, as the literature integrates gradient flows."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe import check
from steppe.dynamics.flow.method import Attempt, Gradient


@dataclass(frozen=True)
class RK4:
    """Four gradients for a step of α/ρ (Cohen et al. 2021 take α = 1; stable up to 2.78), without error control."""

    alpha: float = 1.0
    order: int = 4
    damps: bool = True

    def __post_init__(self) -> None:
        check.number("alpha", self.alpha, above=0.0)

    def longest(self, radius: Array) -> Array:
        return self.alpha / radius

    def attempt(self, gradient: Gradient, w: Array, g: Array, h: Array, radius: Array) -> Attempt:
        h = h.astype(w.dtype)

        def stage(i: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
            """The gradient of stage i + 1, and the weighted sum of those before: ⅙, ⅓, ⅓, ⅙, then the end itself."""
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
