"""Training of the diagonal network with many learning rates in one compiled call."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from steppe.papers.conflicting_biases.diagonal_setting import Example

if TYPE_CHECKING:
    from steppe.store import Checkpoint, Computed

Algorithm = Literal["gd", "heavy-ball", "sam", "label-noise"]
OUTCOMES = ("reached", "exhausted", "diverged", "stalled")


@dataclass(frozen=True)
class Sweep:
    """One algorithm from α·1 for each rate η = rate · η₁. `strength`: β of heavy ball, ρ of SAM, σ of label noise.

    Kept of every run: its end, the first `iterates` steps, and `per_decade` moments a decade of steps.
    """

    KIND: ClassVar[str] = "conflicting-biases/diagonal"

    rates: tuple[float, ...]
    x: tuple[float, ...] = Example.x
    y: float = Example.y
    alpha: float = Example.alpha
    algorithm: Algorithm = "gd"
    strength: float = 0.0
    steps: int = 100_000
    loss: float = 1e-24
    iterates: int = 0
    per_decade: int = 0

    @property
    def example(self) -> Example:
        return Example(self.x, self.y, self.alpha)

    def moments(self) -> list[int]:
        import numpy as np

        decades = np.logspace(0, np.log10(self.steps), round(self.per_decade * np.log10(self.steps)) + 1)
        late = {round(float(m)) for m in decades} if self.per_decade else set()
        return sorted(set(range(min(self.iterates, self.steps) + 1)) | late)

    def compute(self, checkpoint: "Checkpoint | None", progress: Callable[[Any], None] | None) -> "Computed":
        import jax

        with jax.enable_x64(True):
            return self._compute()

    def _compute(self) -> "Computed":
        import jax.numpy as jnp
        import numpy as np

        from steppe.dynamics import run_many
        from steppe.networks._diagonal import shared
        from steppe.papers.conflicting_biases.theory import risk
        from steppe.store import Computed

        rates = np.asarray(self.rates)
        problem = shared(self.x, self.y, start=self.alpha)
        runs = run_many(
            problem, self.dynamics(jnp.asarray(rates * self.example.unit)), steps=self.steps,
            # SAM and label noise never stop moving: they are run for all their steps.
            loss=self.loss if self.algorithm in ("gd", "heavy-ball") else None, moments=self.moments(),
        )  # fmt: skip
        fine = ~runs.ended("diverged")
        # Of a run that has not settled, the point of M on its ray.
        on_M = np.where(fine[:, None], runs.w, 1.0)
        on_M = self.example.manifold().onto(np.where(np.abs(on_M).max(axis=1, keepdims=True) > 0, on_M, 1.0))
        read = {
            "sharpness": self.example.manifold().sharpness(on_M),
            "norm": np.sum(on_M**2, axis=1),
            "risk": risk(on_M),
        }
        curves = {
            "rate": rates,
            "outcome": np.array([OUTCOMES.index(o) for o in runs.outcome]),
            "steps": runs.steps,
            **{name: np.where(fine, column, np.nan) for name, column in read.items()},
        }
        result = {"moments": self.moments(), "outcomes": {o: int(runs.ended(o).sum()) for o in OUTCOMES}}
        return Computed(curves, {"w": runs.w, "path": runs.path}, result)

    def dynamics(self, lr: Any) -> Any:
        from steppe.dynamics import GD, SAM, HeavyBall, LabelNoise

        match self.algorithm:
            case "gd":
                return GD(lr)
            case "heavy-ball":
                return HeavyBall(lr, self.strength)
            case "sam":
                return SAM(lr, self.strength, None)
            case "label-noise":
                return LabelNoise(GD(lr), self.strength)


def even(first: float, last: float, count: int) -> tuple[float, ...]:
    """Evenly spaced rates, written as they are read."""
    return tuple(round(first + (last - first) * k / (count - 1), 6) for k in range(count))
