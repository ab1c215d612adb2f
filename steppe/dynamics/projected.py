"""Projected training: after every step some parameters are scaled back to a given norm (wen2023, figure 6b)."""

from collections.abc import Iterable
from typing import Any, final

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from steppe import check
from steppe.dynamics.base import Dynamics, rate
from steppe.dynamics.named import refuse_unknown, scaled
from steppe.problems import Problem


@final
class Projected(Dynamics):
    """w ← Π(step(w)), where Π scales the parameters called `names`, together, to the Euclidean norm `norm`.

    It begins at Π(w).

    >>> import steppe
    >>> params = {"a": jnp.array([3.0, 4.0]), "b": jnp.array([7.0])}
    >>> p = steppe.Problem(lambda w, x: x @ w["a"], params, jnp.ones((1, 2)), jnp.ones(1), steppe.losses.mse)
    >>> steppe.run(p, Projected(steppe.dynamics.GD(0.0), {"a"}, norm=10.0), stop=steppe.until.steps(1)).w.tolist()
    [6.0, 8.0, 7.0]
    """

    dynamics: Dynamics
    norm: Array
    names: frozenset[str] = eqx.field(static=True)
    batch_size: int | None = eqx.field(static=True)

    def __init__(self, dynamics: Dynamics, names: Iterable[str], norm: ArrayLike):
        if not isinstance(dynamics, Dynamics):
            check.refuse("dynamics", "a dynamics", dynamics, "Pass for example SAM(0.01, 0.1).")
        self.dynamics, self.names, self.norm = dynamics, frozenset(names), rate("norm", norm)
        self.batch_size = dynamics.batch_size

    @property
    def gradients_per_step(self) -> int:  # type: ignore[override]
        return self.dynamics.gradients_per_step

    def start(self, problem: Problem, w: Array) -> Any:
        refuse_unknown(problem, w, self.names)
        return self._project(problem, self.dynamics.start(problem, w))

    def position(self, state: Any) -> Array:
        return self.dynamics.position(state)

    def step(self, problem: Problem, state: Any, index: Array | None, *, key: Array) -> tuple[Any, Array]:
        new, loss = self.dynamics.step(problem, state, index, key=key)
        return self._project(problem, new), loss

    def _project(self, problem: Problem, state: Any) -> Any:
        params = problem.unravel(self.position(state))
        length = jnp.sqrt(sum(jnp.sum(params[name] ** 2) for name in self.names))
        # Nothing at all has no direction to be scaled along.
        factor = self.norm.astype(length.dtype) / jnp.where(length > 0, length, 1)
        return scaled(problem, self.dynamics, state, self.names, factor)
