"""One weight beyond its edge of stability: the orbits of gradient descent for each rate."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from steppe.papers.conflicting_biases.theory.kkt import lyapunov, orbits

if TYPE_CHECKING:
    from steppe.store import Checkpoint, Computed


@dataclass(frozen=True)
class Bifurcation:
    """z ← z(1 + a(1 − z²)) for `count` values of a = η/η_c on [first, last]; the last `keep` iterates of each."""

    KIND: ClassVar[str] = "conflicting-biases/bifurcation"

    first: float = 0.85
    last: float = 2.05
    count: int = 961
    burn: int = 4000
    keep: int = 120
    start: float = 0.1

    def compute(self, checkpoint: "Checkpoint | None", progress: Callable[[Any], None] | None) -> "Computed":
        import numpy as np

        pass  # MERGED
        from steppe.store import Computed

        a = np.linspace(self.first, self.last, self.count)
        z = orbits(a, start=self.start, burn=self.burn, keep=self.keep)
        curves = {"a": a, "lyapunov": lyapunov(a, start=self.start, burn=self.burn, keep=2000)}
        return Computed(curves, {"z": z}, {"escaped": int(np.isnan(z[:, -1]).sum())})
