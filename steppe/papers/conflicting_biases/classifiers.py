"""Appendix F by Monte Carlo: how often the two classifiers of Theorem F.1 err, against ‖μ‖."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from steppe.papers.conflicting_biases.theory.two_points import MAX_MARGIN, MIN_SHARPNESS, error, monte_carlo

if TYPE_CHECKING:
    from steppe.store import Checkpoint, Computed


@dataclass(frozen=True)
class Classifiers:
    """Errors of the max-margin and of the flattest classifier for each m = ‖μ‖ in dimension d."""

    KIND: ClassVar[str] = "conflicting-biases/classifiers"

    d: int = 10
    means: tuple[float, ...] = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)
    samples: int = 1_000_000
    seed: int = 0

    def compute(self, checkpoint: "Checkpoint | None", progress: Callable[[Any], None] | None) -> "Computed":
        import numpy as np

        from steppe.papers.conflicting_biases.theory import printed
        from steppe.papers.conflicting_biases.theory.risk import standard_error
        from steppe.store import Computed

        curves: dict[str, Any] = {"mean": np.array(self.means)}
        for name, c in (("max_margin", MAX_MARGIN), ("min_sharpness", MIN_SHARPNESS)):
            drawn = [
                monte_carlo(self.d, m, c, samples=self.samples, key=self.seed + k) for k, m in enumerate(self.means)
            ]
            curves |= {
                name: np.array([e.value for e in drawn]),
                f"{name}_error": np.array([standard_error(e) for e in drawn]),
                f"{name}_exact": np.array([error(self.d, m, c) for m in self.means]),
                f"{name}_printed": np.array([printed.large_mean_error(self.d, m, c) for m in self.means]),
                f"{name}_projected": np.array([printed.projected_error(m, c) for m in self.means]),
            }
        return Computed(curves, {}, {"samples": self.samples})
