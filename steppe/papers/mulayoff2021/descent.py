"""Gradient descent from one start with many step sizes, as in the supplement of mulayoff2021, section I."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from steppe.store import Checkpoint, Computed


@dataclass(frozen=True)
class Descent:
    """`count` step sizes, log-spaced on [low, high], of which this run takes every `parts`-th from `part` on.

    A net of `width` neurons, initialised as PyTorch does times `scale`, fits n points until the loss (1/2n) Σ (f − y)²
    is at most `loss`. The step size grows linearly over `warmup` steps, and is multiplied by `factor` when the loss is
    first below `below`.
    """

    KIND: ClassVar[str] = "mulayoff2021/descent"

    scale: float
    low: float
    high: float
    count: int
    part: int = 0
    parts: int = 1
    warmup: int = 0
    below: float = 0.0
    factor: float = 1.0
    loss: float = 1e-8
    max_steps: int = 3_000_000
    width: int = 80
    n: int = 10
    seed: int = 0
    reach: float = 2.0
    gap: float = 0.2
    spread: float = 0.5

    def compute(self, checkpoint: "Checkpoint | None", progress: Callable[[Any], None] | None) -> "Computed":
        """Train; one row a step size, with everything the claims ask of its minimum."""
        import numpy as np

        from steppe.dynamics._minima import minima
        from steppe.papers.mulayoff2021.analysis import NAMES, analysed
        from steppe.store import Computed

        x, y = self.data()
        rates = self.rates()
        done = minima(
            x, y, self.start(), rates, loss=self.loss, max_steps=self.max_steps, warmup=self.warmup,
            below=self.below, factor=self.factor, checkpoint=checkpoint, progress=progress,
        )  # fmt: skip
        counted = np.array([o == "reached" for o in done.outcome]) & ~done.warming
        # The step size at which a run that counts ended.
        final = rates * np.where(self.below > 0, self.factor, 1.0)
        rows = [analysed(done.params(k), x, float(final[k])) if counted[k] else {} for k in range(len(rates))]
        columns: dict[str, Any] = {name: np.array([row.get(name, np.nan) for row in rows]) for name in NAMES}
        columns |= {
            "lr": rates, "step": done.steps, "loss": done.loss, "counted": counted, "warming": done.warming,
            "reached": np.array([o == "reached" for o in done.outcome]),
            "diverged": np.array([o == "diverged" for o in done.outcome]),
        }  # fmt: skip
        params = {"x": x, "y": y, "moments": done.moments, "losses": done.losses}
        params |= {name: getattr(done, name) for name in ("W1", "b1", "W2", "b2")}
        outcomes = {name: done.outcome.count(name) for name in ("reached", "exhausted", "diverged", "stalled")}
        result = {"outcomes": outcomes, "warming": int(done.warming.sum()), "run_steps": int(done.steps.sum())}
        return Computed(columns, params, result)

    def data(self) -> tuple[Any, Any]:
        from steppe.papers.mulayoff2021.data import points

        return points(self.n, reach=self.reach, gap=self.gap, spread=self.spread, seed=self.seed)

    def rates(self) -> Any:
        import numpy as np

        return np.geomspace(self.low, self.high, self.count)[self.part :: self.parts]

    def start(self) -> dict[str, Any]:
        import numpy as np

        from steppe.networks import OneHidden

        return OneHidden().init(1, self.width, np.random.default_rng([self.seed, 1]), scale=self.scale)
