"""The generic path: any dynamics on any network, many steps in one compiled loop."""

from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from steppe.dynamics._base import Dynamics
from steppe.kernels.path import Halt, Indices
from steppe.problem import Problem


@final
class Generic:
    def __init__(self, problem: Problem, dynamics: Dynamics, key: int):
        self.problem, self.dynamics = problem, dynamics
        self.key = jax.random.key(key)

    def start(self, w: Array) -> Any:
        return self.dynamics.start(self.problem, w)

    def position(self, state: Any) -> Array:
        return self.dynamics.position(state)

    def advance(
        self, state: Any, orders: Indices | None, *, first: int, offset: int, count: int, target: float
    ) -> tuple[Any, int, Halt]:
        numbers = (jnp.asarray(v) for v in (first, offset, count, target))
        state, done, halt = advance(self.problem, self.dynamics, state, orders, self.key, *numbers)
        return state, int(done), Halt(int(halt))


@eqx.filter_jit
def advance(
    problem: Problem,
    dynamics: Dynamics,
    state: Any,
    orders: Indices | None,
    key: Array,
    first: Array,
    offset: Array,
    count: Array,
    target: Array,
) -> tuple[Any, Array, Array]:
    """The loop. Everything that varies between calls is an array, so that it compiles once for a kind of problem."""

    def step(state: Any, i: Array) -> tuple[Any, Array]:
        step_key = jax.random.fold_in(key, first + i)
        if orders is None:
            return dynamics.step(problem, state, None, key=step_key)
        return _mini_batch_step(problem, dynamics, state, jnp.asarray(orders), offset + i, step_key)

    def body(carry: tuple[Any, Array, Array]) -> tuple[Any, Array, Array]:
        state, i, _ = carry
        new, loss = step(state, i)
        halt = jnp.where(jnp.isfinite(loss), Halt.NOT, Halt.DIVERGED)
        if orders is None:  # only then is `loss` the loss of all examples, and a fixed point fixed for good
            halt = jnp.where(_equal(new, state), Halt.STALLED, halt)
            halt = jnp.where(loss <= target, Halt.REACHED, halt)
        state = jax.tree.map(lambda a, b: jnp.where(halt == Halt.NOT, a, b), new, state)
        return state, i + (halt == Halt.NOT), halt.astype(jnp.int32)

    start = (state, jnp.zeros_like(count), jnp.asarray(Halt.NOT, dtype=jnp.int32))
    return jax.lax.while_loop(lambda c: (c[1] < count) & (c[2] == Halt.NOT), body, start)


def _mini_batch_step(
    problem: Problem, dynamics: Dynamics, state: Any, orders: Array, t: Array, key: Array
) -> tuple[Any, Array]:
    n, size = orders.shape[1], dynamics.batch_size or orders.shape[1]
    per_epoch = -(-n // size)
    order, position = orders[t // per_epoch], t % per_epoch

    def whole(state: Any) -> tuple[Any, Array]:
        batch = jax.lax.dynamic_slice_in_dim(order, position * size, size)
        return dynamics.step(problem, state, batch, key=key)

    if n % size == 0:
        return whole(state)
    # The last batch of an epoch holds what is left: a second shape, compiled as the other branch.
    ragged = order[n - n % size :]
    return jax.lax.cond(position == per_epoch - 1, lambda s: dynamics.step(problem, s, ragged, key=key), whole, state)


def _equal(a: Any, b: Any) -> Array:
    return jnp.stack([jnp.all(x == y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)]).all()
