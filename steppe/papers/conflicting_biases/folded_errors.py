"""Expected errors of appendix E.1 (folded Gaussian): finite for the least norm, infinite for the least sharpness."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from steppe.papers.conflicting_biases.theory.flow import (
    Folded,
    min_norm,
    min_norm_error,
    min_risk,
    min_sharpness,
    min_sharpness_error,
    square_rate,
)

if TYPE_CHECKING:
    from steppe.store import Checkpoint, Computed


@dataclass(frozen=True)
class FoldedErrors:
    """Monte Carlo against the exact integrals, in n dimensions; for x_min over x_min > δ only."""

    KIND: ClassVar[str] = "conflicting-biases/folded"

    n: int = 2
    samples: int = 1_000_000
    deltas: tuple[float, ...] = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
    seed: int = 0

    def compute(self, checkpoint: "Checkpoint | None", progress: Callable[[Any], None] | None) -> "Computed":
        import numpy as np

        pass  # MERGED
        from steppe.papers.conflicting_biases.theory.risk import mean, standard_error
        from steppe.store import Computed

        law = Folded(self.n)
        moments = law.moments()
        x, y = law(np.random.default_rng(self.seed), self.samples)
        norm = mean(moments.risk(min_norm(x, y)))
        flat = moments.risk(min_sharpness(x, y))
        # The best is 1 with risk 0 whatever is drawn: a few draws show it.
        best = mean(moments.risk(min_risk(x[:1000], y[:1000], moments)))
        drawn = [mean(np.where(x.min(axis=1) > delta, flat, 0)) for delta in self.deltas]
        curves = {
            "delta": np.array(self.deltas),
            "drawn": np.array([e.value for e in drawn]),
            "drawn_error": np.array([standard_error(e) for e in drawn]),
            "exact": np.array([min_sharpness_error(self.n, delta) for delta in self.deltas]),
            "asymptote": np.array([square_rate(self.n) / (2 * delta) for delta in self.deltas]),
        }
        result = {
            "norm": norm.value,
            "norm_error": standard_error(norm),
            "norm_exact": min_norm_error(self.n),
            "best": best.value,
        }
        return Computed(curves, {}, result)
