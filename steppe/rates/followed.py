"""λ_max followed along one run, in a form that can be saved and taken up again to the bit."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import linalg
from steppe.estimate import Estimate
from steppe.measures.operators import hessian
from steppe.problems import Problem

_ARRAYS = ("vectors", "values", "watch", "before")
_FLAGS = ("takeover", "settled", "fell", "slows")


@dataclass(frozen=True)
class Followed:
    """A tracker and what it has spent: `estimate, followed = followed.measure(problem, w)`, a pure step.

    Runs that start at the same point may start from the same `Followed`: the first measurement is made once.

    >>> import jax.numpy as jnp, steppe
    >>> p = Problem(lambda w, x: w[0] * w[1] * x, jnp.ones(2), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)
    >>> estimate, after = Followed.fresh(p, key=0).measure(p, p.w0)
    >>> round(estimate.value, 6), after.products == estimate.matvecs        # ∇²L = [[1, 1], [1, 1]]
    (2.0, True)
    """

    tracker: linalg.Tracker
    products: int = 0

    @classmethod
    def fresh(cls, problem: Problem, *, rtol: float = 1e-3, key: int = 0) -> "Followed":
        return cls(linalg.Tracker(problem.w0.size, rtol=rtol, key=key))

    def measure(self, problem: Problem, w: Array) -> tuple[Estimate, "Followed"]:
        """λ_max(∇²L(w)) to rtol."""
        with linalg.one_thread():
            estimate, tracker = self.tracker.insist(hessian(problem, w))
        return estimate, Followed(tracker, self.products + estimate.matvecs)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that the next measurement depends on."""
        known = {name: getattr(self.tracker, name) for name in _ARRAYS}
        counts = [self.products, self.tracker.calls, *(int(getattr(self.tracker, name)) for name in _FLAGS)]
        exact = {"counts": np.array(counts), "growth": np.array([self.tracker.growth])}
        return exact | {name: array for name, array in known.items() if array is not None}

    def restored(self, arrays: dict[str, NDArray[Any]]) -> "Followed":
        """The state of `arrays`, with the settings of this one."""
        products, calls, *flags = (int(v) for v in arrays["counts"])
        state: dict[str, Any] = {name: arrays.get(name) for name in _ARRAYS}
        state |= zip(_FLAGS, map(bool, flags), strict=True)
        state["growth"] = float(arrays["growth"][0])
        return Followed(replace(self.tracker, calls=calls, **state), products)
