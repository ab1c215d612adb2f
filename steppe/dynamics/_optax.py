"""Any optimiser of optax as a dynamics."""

from typing import TYPE_CHECKING, Any, ClassVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from steppe import check
from steppe.dynamics._base import Dynamics, batch, batch_loss
from steppe.problem import Problem

if TYPE_CHECKING:
    import optax


@final
class Optax(Dynamics):
    """w ← w + u, where the transformation of optax makes the update u of ∇L(w), of w and of what it remembers.

    The transformation sees the parameters in the problem's own structure, so that masks and layer-wise rules work. One
    that asks for the loss gets it, and a line search gets the function; a gradient that it evaluates is not counted.

    >>> import jax.numpy as jnp, optax, steppe
    >>> p = steppe.Problem(lambda w, x: w * x, jnp.array([1.0]), jnp.ones(1), jnp.zeros(1), steppe.losses.half_mse)
    >>> steppe.run(p, Optax(optax.sgd(0.5)), stop=steppe.until.steps(3)).w.tolist()          # halves w at every step
    [0.125]
    """

    transformation: "optax.GradientTransformation" = eqx.field(static=True)
    batch_size: int | None = eqx.field(static=True)
    gradients_per_step: ClassVar[int] = 1

    def __init__(self, transformation: "optax.GradientTransformation", batch_size: int | None = None):
        import optax

        if not isinstance(transformation, optax.GradientTransformation):
            check.refuse(
                "transformation",
                "an optax.GradientTransformation",
                transformation,
                "Pass for example optax.adam(1e-3).",
            )
        self.transformation, self.batch_size = transformation, batch(batch_size)

    def start(self, problem: Problem, w: Array) -> tuple[Array, Any]:
        return w, self.transformation.init(problem.unravel(w))

    def position(self, state: tuple[Array, Any]) -> Array:
        return state[0]

    def step(
        self, problem: Problem, state: tuple[Array, Any], index: Array | None, *, key: Array
    ) -> tuple[tuple[Array, Any], Array]:
        import optax

        w, memory = state
        loss, g = jax.value_and_grad(batch_loss, argnums=1)(problem, w, index)
        params, gradient = problem.unravel(w), problem.unravel(g)
        extra = {"value": loss, "grad": gradient, "value_fn": lambda at: batch_loss(problem, _flat(at), index)}
        transformation = optax.with_extra_args_support(self.transformation)
        updates, memory = transformation.update(gradient, memory, params, **extra)
        return (w + _flat(updates).astype(w.dtype), memory), loss


def _flat(params: Any) -> Array:
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(params)])
