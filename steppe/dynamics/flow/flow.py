"""Gradient flow as a dynamics of `steppe.run`."""

from typing import Any, Literal, final

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe import check
from steppe.dynamics.base import Dynamics, rate
from steppe.dynamics.flow.judge import ROUNDING, Tolerance
from steppe.dynamics.flow.method import Method
from steppe.dynamics.flow.rk4 import RK4
from steppe.dynamics.flow.rkc2 import RKC2
from steppe.problems import Problem

_METHODS: dict[str, Method] = {"rkc2": RKC2(), "rk4": RK4()}

# The constant between the error a gradient may make, as rtol^{1 + 1/p}, and rtol for all of them: from measurements on
# least squares and on networks, where it leaves the error at the end a little below rtol.
_STEPS = 1.25

# Gradients of the shortest step.
_FEWEST = 2


@final
class Flow(Dynamics):
    """w′ = −∇L(w), the limit of gradient descent as the rate goes to 0, to about rtol of the way w has come.

    The error of each step is controlled; how the errors add up depends on whether the flow brings neighbours together.
    A flow that goes on from the end of another one counts its way from where that one began, its `origin`.
    The default method, RKC2, takes steps far longer than 2/λ_max at the price of few more gradients: it pays √κ where
    gradient descent and the classical methods pay κ. "rk4" is the classical method at the step α/λ_max, without
    error control; `RK4(alpha)` chooses α.

    A step of the run is one step of the method. `until.time` is met exactly; `until.loss` is located within the step;
    `when.times` records at chosen times between the steps.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: w * x, jnp.array([1.0]), jnp.ones(1), jnp.zeros(1), steppe.losses.half_mse)
    >>> r = steppe.run(p, Flow(rtol=1e-6), stop=steppe.until.time(1.0))
    >>> round(float(r.w[0]), 4), r.outcome                                     # e⁻¹
    (0.3679, 'exhausted')
    """

    rtol: Array
    origin: Array | None
    method: Method = eqx.field(static=True)
    batch_size: int | None = eqx.field(static=True)

    def __init__(
        self,
        rtol: ArrayLike = 1e-3,
        *,
        method: Literal["rkc2", "rk4"] | Method = "rkc2",
        origin: ArrayLike | None = None,
    ):
        self.rtol = rate("rtol", rtol)
        if self.rtol.ndim or not 0 < self.rtol < 1:
            check.refuse("rtol", "one number between 0 and 1", rtol, "Pass for example rtol=1e-3.")
        chosen = _METHODS.get(method) if isinstance(method, str) else method
        if not isinstance(chosen, RKC2 | RK4):
            check.refuse("method", f"one of {', '.join(_METHODS)}", method, 'Pass for example method="rkc2".')
        self.method, self.batch_size = chosen, None
        self.origin = None if origin is None else jnp.asarray(origin)
        if self.origin is not None:
            check.finite("origin", self.origin)

    def check_precision(self, dtype: Any) -> None:
        p = self.method.order
        least = (ROUNDING * float(np.finfo(dtype).eps) / (_FEWEST * _STEPS)) ** (p / (p + 1))
        if self.rtol < least:
            check.refuse("rtol", f"at least {least:.1g} in {dtype}", float(self.rtol), "Use float64 for a smaller one.")

    @property
    def tolerance(self) -> Tolerance:
        """For each gradient of a step: h^p in all is h^{p+1} a step, p the order of the method. Across a kink, whose
        error does not add up with others: rtol itself."""
        return Tolerance(_STEPS * self.rtol ** (1 + 1 / self.method.order), self.rtol)

    def gradients(self, state: Any, steps: int) -> int:
        return int(state.gradients)

    def step(self, problem: Problem, state: Any, index: Array | None, *, key: Array) -> tuple[Any, Array]:
        """A flow has its own loop, which knows of times; nothing can be put around it or beside it."""
        check.refuse("dynamics", "one that makes steps of its own", self, "Run the Flow alone, by steppe.run.")
