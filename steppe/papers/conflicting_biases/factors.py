"""The form ⟨u ⊙ v, x⟩ on several examples: where descent, label noise and 1-SAM take it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from steppe.store import Checkpoint, Computed


@dataclass(frozen=True)
class Factors:
    """n examples with a target of two non-zero weights among d; u and v start as Gaussians.

    `strength`: σ of label noise, ρ of 1-SAM.
    """

    KIND: ClassVar[str] = "conflicting-biases/factors"

    algorithm: Literal["gd", "label-noise", "1-sam"]
    lr: float
    strength: float = 0.0
    steps: int = 200_000
    n: int = 6
    d: int = 12
    seed: int = 0

    def data(self) -> tuple[Any, Any, Any, Any]:
        """x, y, and the start u, v."""
        import numpy as np

        rng = np.random.default_rng(self.seed)
        x = rng.normal(size=(self.n, self.d))
        beta = np.zeros(self.d)
        beta[[1, 4]] = 1.5, -1.0
        return x, x @ beta, rng.normal(size=self.d), rng.normal(size=self.d)

    def compute(self, checkpoint: "Checkpoint | None", progress: Callable[[Any], None] | None) -> "Computed":
        import jax

        with jax.enable_x64(True):
            return self._compute(checkpoint, progress)

    def _compute(self, checkpoint: Any, progress: Any) -> "Computed":
        import numpy as np

        from steppe import until, when
        from steppe.dynamics import run
        from steppe.networks._diagonal import two_factors
        from steppe.papers.conflicting_biases.theory import kkt as theory
        from steppe.store import Computed

        x, y, u, v = self.data()
        problem = two_factors(x, y, u=u, v=v)
        flattest = theory.flattest(x, y)

        def trace(problem: Any, w: Any) -> float:
            return float(theory.trace(x, w[: self.d], w[self.d :]))

        def distance(problem: Any, w: Any) -> float:
            return float(np.abs(np.asarray(w[: self.d] * w[self.d :]) - flattest.beta).max())

        done = run(
            problem,
            self.dynamics(),
            stop=until.steps(self.steps),
            record={"trace": trace, "distance": distance},
            when=when.logarithmic(per_decade=10),
            checkpoint=checkpoint,
            progress=progress,
            key=self.seed,
        )
        last = {name: done.records[name][-1].item() for name in ("trace", "distance")}
        result = last | {"least": flattest.trace, "lower": flattest.lower, "outcome": done.outcome}
        return Computed(done.records, {"w": np.asarray(done.w)}, result)

    def dynamics(self) -> Any:
        from steppe.dynamics import GD, SAM, LabelNoise, Schedule, Stage

        match self.algorithm:
            case "gd":
                return GD(self.lr)
            case "label-noise":
                # The noise shrinks β by an amount ∝ η: a last stretch with a tenth of the rate takes that back.
                long, last = (LabelNoise(GD(lr), self.strength) for lr in (self.lr, self.lr / 10))
                return Schedule((Stage(long, epochs=self.steps * 9 // 10), Stage(last)))
            case "1-sam":
                return SAM(self.lr, self.strength)
