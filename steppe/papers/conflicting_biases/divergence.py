"""The rate at which gradient descent really diverges, against the one beyond which nothing on M is stable."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from steppe.store import Checkpoint, Computed


@dataclass(frozen=True)
class Divergence:
    """For each limit x_max/x_min: how far up (in η₁) all rates of a grid converge, and the last that does."""

    KIND: ClassVar[str] = "conflicting-biases/divergence"

    limits: tuple[float, ...] = (1.1, 1.2, 1.35, 1.5, 1.65, 1.8, 2.0, 2.3, 2.7, 3.3, 4.0, 5.0)
    alpha: float = 0.05
    count: int = 401
    steps: int = 40_000

    def compute(self, checkpoint: "Checkpoint | None", progress: Callable[[Any], None] | None) -> "Computed":
        import jax

        with jax.enable_x64(True):
            return self._compute()

    def _compute(self) -> "Computed":
        import jax.numpy as jnp
        import numpy as np

        from steppe.dynamics import GD, run_many
        from steppe.networks._diagonal import shared
        from steppe.store import Computed

        rates = np.linspace(0.5, 3.0, self.count)
        curves: dict[str, list[float]] = {"limit": [], "all_below": [], "last": [], "diverges_from": []}
        for limit in self.limits:
            # y = 1, x_max = 1: by scaling of w, only the ratio of the entries of x matters.
            problem = shared([1.0, 1 / limit], 1.0, start=self.alpha)
            runs = run_many(problem, GD(jnp.asarray(rates / 2)), steps=self.steps, loss=1e-20)
            fine, gone = runs.ended("reached"), runs.ended("diverged")
            curves["limit"].append(limit)
            # At η_c itself convergence is slower than any number of steps: that is not a failure.
            curves["all_below"].append(float(rates[np.argmin(fine | (rates < 1.05)) - 1]))
            curves["last"].append(float(rates[fine].max()))
            curves["diverges_from"].append(float(rates[np.argmax(gone)]))
        return Computed({name: np.array(column) for name, column in curves.items()}, {}, {"step": rates[1] - rates[0]})
