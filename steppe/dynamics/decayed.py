"""Weight decay of some parameters only: after every step they shrink by a factor."""

from collections.abc import Iterable
from typing import Any, final

import equinox as eqx
from jax import Array
from jax.typing import ArrayLike

from steppe import check
from steppe.dynamics.base import Dynamics, rate
from steppe.dynamics.named import refuse_unknown, scaled
from steppe.problems import Problem


@final
class Decayed(Dynamics):
    """The steps of `dynamics`, after each of which the parameters called `names` are multiplied by 1 − `shrink`.

    Decay λ of those parameters alone, with a rate η, is shrink = ηλ.

    >>> import jax.numpy as jnp, steppe
    >>> params = {"a": jnp.array([8.0]), "b": jnp.array([7.0])}
    >>> p = steppe.Problem(lambda w, x: x @ w["a"], params, jnp.ones((1, 1)), jnp.ones(1), steppe.losses.mse)
    >>> steppe.run(p, Decayed(steppe.dynamics.GD(0.0), {"a"}, shrink=0.5), stop=steppe.until.steps(3)).w.tolist()
    [1.0, 7.0]
    """

    dynamics: Dynamics
    shrink: Array
    names: frozenset[str] = eqx.field(static=True)
    batch_size: int | None = eqx.field(static=True)

    def __init__(self, dynamics: Dynamics, names: Iterable[str], shrink: ArrayLike):
        if not isinstance(dynamics, Dynamics):
            check.refuse("dynamics", "a dynamics", dynamics, "Pass for example SAM(0.01, 0.1).")
        self.dynamics, self.names, self.shrink = dynamics, frozenset(names), rate("shrink", shrink)
        self.batch_size = dynamics.batch_size

    @property
    def gradients_per_step(self) -> int:  # type: ignore[override]
        return self.dynamics.gradients_per_step

    def start(self, problem: Problem, w: Array) -> Any:
        refuse_unknown(problem, w, self.names)
        return self.dynamics.start(problem, w)

    def position(self, state: Any) -> Array:
        return self.dynamics.position(state)

    def step(self, problem: Problem, state: Any, index: Array | None, *, key: Array) -> tuple[Any, Array]:
        new, loss = self.dynamics.step(problem, state, index, key=key)
        kept = 1 - self.shrink.astype(self.position(new).dtype)
        return scaled(problem, self.dynamics, new, self.names, kept), loss
