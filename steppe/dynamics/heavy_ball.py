"""Gradient descent with momentum (Polyak 1964)."""

from typing import ClassVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from steppe.dynamics.base import Dynamics, batch, batch_loss, rate
from steppe.problems import Problem


@final
class HeavyBall(Dynamics):
    """v ← βv − η∇L(w), w ← w + v, from v = 0: on a quadratic stable below the sharpness 2(1 + β)/η.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: w * x, jnp.array([1.0]), jnp.ones(1), jnp.zeros(1), steppe.losses.half_mse)
    >>> steppe.run(p, HeavyBall(0.5, 0.5), stop=steppe.until.steps(2)).w.tolist()   # 1 − ½, then ½ − ¼ − ¼
    [0.0]
    """

    lr: Array
    momentum: Array
    batch_size: int | None = eqx.field(static=True)
    gradients_per_step: ClassVar[int] = 1

    def __init__(self, lr: ArrayLike, momentum: ArrayLike, batch_size: int | None = None):
        self.lr, self.momentum, self.batch_size = rate("lr", lr), rate("momentum", momentum), batch(batch_size)

    def start(self, problem: Problem, w: Array) -> tuple[Array, Array]:
        return w, jnp.zeros_like(w)

    def position(self, state: tuple[Array, Array]) -> Array:
        return state[0]

    def step(
        self, problem: Problem, state: tuple[Array, Array], index: Array | None, *, key: Array
    ) -> tuple[tuple[Array, Array], Array]:
        w, v = state
        loss, g = jax.value_and_grad(batch_loss, argnums=1)(problem, w, index)
        v = self.momentum.astype(w.dtype) * v - self.lr.astype(w.dtype) * g
        return (w + v, v), loss
