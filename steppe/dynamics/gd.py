"""Gradient descent, full batch or mini-batch, with weight decay."""

from typing import ClassVar, final

import equinox as eqx
import jax
from jax import Array
from jax.typing import ArrayLike

from steppe.dynamics.base import Dynamics, batch, batch_loss, rate
from steppe.problems import Problem


@final
class GD(Dynamics):
    """w ← w − η (∇L(w) + λw): gradient descent with weight decay λ.

    With `batch_size` it is SGD: every epoch visits all examples in a new random order.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: w * x, jnp.array([1.0]), jnp.ones(1), jnp.zeros(1), steppe.losses.half_mse)
    >>> steppe.run(p, GD(0.5), stop=steppe.until.steps(3)).w.tolist()          # halves w at every step
    [0.125]
    """

    lr: Array
    weight_decay: Array
    batch_size: int | None = eqx.field(static=True)
    gradients_per_step: ClassVar[int] = 1

    def __init__(self, lr: ArrayLike, *, weight_decay: ArrayLike = 0.0, batch_size: int | None = None):
        self.lr, self.weight_decay = rate("lr", lr), rate("weight_decay", weight_decay)
        self.batch_size = batch(batch_size)

    def step(self, problem: Problem, state: Array, index: Array | None, *, key: Array) -> tuple[Array, Array]:
        w = state
        loss, g = jax.value_and_grad(batch_loss, argnums=1)(problem, w, index)
        lr, decay = self.lr.astype(w.dtype), self.weight_decay.astype(w.dtype)
        return w - lr * (g + decay * w), loss
