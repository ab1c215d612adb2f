"""A dynamics is one pure step; the generic path compiles many steps of it, on any network."""

import abc
from typing import Any, ClassVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe import check, kernels
from steppe.kernels.path import Indices, Path
from steppe.kernels.training import Recipe
from steppe.outcome import Halt
from steppe.problem import Problem
from steppe.until import Stop
from steppe.when import When


class Dynamics(eqx.Module):
    """How w moves: `step` maps a state to the next one. The state is w itself unless a dynamics remembers more."""

    batch_size: eqx.AbstractVar[int | None]
    gradients_per_step: ClassVar[int]
    # A run is measured in time (a flow) or in steps and epochs (everything else).
    in_time: ClassVar[bool] = False

    def start(self, problem: Problem, w: Array) -> Any:
        return w

    def position(self, state: Any) -> Array:
        return state

    def gradients(self, state: Any, steps: int) -> int:
        """How many gradients were evaluated in the `steps` steps that led to this state."""
        return steps * self.gradients_per_step

    def recipe(self) -> Recipe | None:
        """This dynamics as the numbers that every kernel understands; None if no kernel knows it."""
        return None

    def path(self, problem: Problem, *, stop: Stop, when: When, key: int, use_kernels: bool) -> Path:
        """The path of a run: a kernel if one fits and `use_kernels`, else the generic path."""
        kernel = kernels.build(problem, self.recipe(), key) if use_kernels else None
        return kernel or Generic(problem, self, key)

    @abc.abstractmethod
    def step(self, problem: Problem, state: Any, index: Array | None, *, key: Array) -> tuple[Any, Array]:
        """The next state, and the loss of this batch before the step. `index` names its examples, None means all."""


def batch_loss(problem: Problem, w: Array, index: Array | None) -> Array:
    return problem.loss(w) if index is None else problem.batch_loss(w, index)


def rate(name: str, value: ArrayLike) -> Array:
    """A rate as an array: an array is not a compile-time constant, so a sweep over it compiles once."""
    if isinstance(value, jax.core.Tracer):
        return value
    try:
        array = np.asarray(value)
        known = array.dtype.kind in "iuf" and bool((np.isfinite(array) & (array >= 0)).all())
    except ValueError:  # rows of different lengths
        known = False
    if not known:
        check.refuse(name, "a finite number ≥ 0", value, f"Pass for example {name}=0.01.")
    return jnp.asarray(check.converted(name, array, jax.dtypes.canonicalize_dtype(float)))


def batch(value: int | None) -> int | None:
    remedy = "Pass a whole number of examples, or None for all of them."
    return None if value is None else check.integer("batch_size", value, minimum=1, remedy=remedy)


@final
class Generic(Path):
    """The path of any dynamics on any network."""

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
        state, done, halt = many_steps(self.problem, self.dynamics, state, orders, self.key, *numbers)
        return state, int(done), Halt(int(halt))


@eqx.filter_jit
def many_steps(
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
    """What `Path.advance` asks for. All that differs between calls is an array, so it compiles once for a problem."""

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
    # The last batch of an epoch is smaller: a second shape, compiled as the other branch.
    ragged = order[n - n % size :]
    return jax.lax.cond(position == per_epoch - 1, lambda s: dynamics.step(problem, s, ragged, key=key), whole, state)


def _equal(a: Any, b: Any) -> Array:
    return jnp.stack([jnp.all(x == y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)]).all()
