"""Gradient descent, heavy ball and SAM."""

from typing import ClassVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from steppe.dynamics._base import Dynamics, batch, batch_loss, rate
from steppe.kernels.training import Recipe
from steppe.problem import Problem


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

    def recipe(self) -> Recipe | None:
        return Recipe.of(self.lr, 0.0, self.weight_decay, self.batch_size)

    def step(self, problem: Problem, state: Array, index: Array | None, *, key: Array) -> tuple[Array, Array]:
        w = state
        loss, g = jax.value_and_grad(batch_loss, argnums=1)(problem, w, index)
        lr, decay = self.lr.astype(w.dtype), self.weight_decay.astype(w.dtype)
        return w - lr * (g + decay * w), loss


@final
class HeavyBall(Dynamics):
    """v ← βv − η∇L(w), w ← w + v, from v = 0: gradient descent with momentum (Polyak 1964).

    On a quadratic it is stable below the sharpness 2(1 + β)/η.

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


@final
class SAM(Dynamics):
    """w ← w − η (∇ℓ(w + ρ ∇ℓ(w)/‖∇ℓ(w)‖) + λw), where ℓ is the loss of one batch (Foret et al. 2021).

    By default a batch is one example: the 1-SAM of wen2023.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: w * x, jnp.array([1.0]), jnp.ones(1), jnp.zeros(1), steppe.losses.half_mse)
    >>> steppe.run(p, SAM(0.5, rho=1.0), stop=steppe.until.steps(1)).w.tolist()   # 1 − ½ · ∇ℓ(1 + 1)
    [0.0]
    """

    lr: Array
    rho: Array
    weight_decay: Array
    batch_size: int | None = eqx.field(static=True)
    gradients_per_step: ClassVar[int] = 2

    def __init__(self, lr: ArrayLike, rho: ArrayLike, batch_size: int | None = 1, *, weight_decay: ArrayLike = 0.0):
        self.lr, self.rho, self.weight_decay = rate("lr", lr), rate("rho", rho), rate("weight_decay", weight_decay)
        self.batch_size = batch(batch_size)

    def recipe(self) -> Recipe | None:
        return Recipe.of(self.lr, self.rho, self.weight_decay, self.batch_size)

    def step(self, problem: Problem, state: Array, index: Array | None, *, key: Array) -> tuple[Array, Array]:
        w = state
        lr, rho, decay = (a.astype(w.dtype) for a in (self.lr, self.rho, self.weight_decay))
        loss, g = jax.value_and_grad(batch_loss, argnums=1)(problem, w, index)
        ascended = w + rho * _direction(g)
        g = jax.grad(batch_loss, argnums=1)(problem, ascended, index)
        return w - lr * (g + decay * w), loss


def _direction(g: Array) -> Array:
    """g/‖g‖, where the squares of a small g do not underflow."""
    largest = jnp.max(jnp.abs(g))
    # An already fitted example has g = 0, and 0/0 is NaN: it gets no perturbation.
    g = g / jnp.where(largest > 0, largest, 1)
    return g / jnp.where(largest > 0, jnp.sqrt(jnp.sum(g * g)), 1)
