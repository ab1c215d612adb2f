"""Figure 10: measures of sharpness at the ends of a sweep, and those that no rescaling of the network changes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from steppe.experiments import Experiment
from steppe.papers.conflicting_biases.network_runs import NetworkSweep
from steppe.store import Computed
from steppe.sweep import Composite, Get

# The rows of figure 10 below λ_max.
MEASURES = ("trace", "adaptive_average", "adaptive_worst", "fisher", "fisher_trace")
# Beyond it: the Fisher information with the labels of the data, and measures without scale.
SCALE_FREE = ("empirical_fisher", "empirical_fisher_trace", "weighted", "adaptive_linf", "invariant")

_RADIUS = 0.1


@dataclass(frozen=True)
class MeasuredEnds(Experiment, Composite, kind="conflicting-biases/measures"):
    """The ends of a sweep at its last goal with the columns of MEASURES and SCALE_FREE, NaN where not measured."""

    precision = "float32"

    sweep: NetworkSweep

    @property
    def split(self) -> bool:
        return True

    @property
    def setting(self) -> Any:
        return self.sweep.setting

    def missing(self, get: Get) -> list[Any]:
        if get(self.sweep) is not None:
            return []
        parts: list[Any] = self.sweep.missing(get) if self.sweep.split else []
        return parts or [self.sweep]

    def compose(self, get: Get) -> Computed:
        import jax

        entry: Any = get(self.sweep)
        with jax.enable_x64(False):
            problem, _ = self.setting.problems()
            last = np.isclose(entry.curves["goal"], self.sweep.goals[-1], rtol=1e-9, atol=0)
            kept = {name: column[last] for name, column in entry.curves.items()}
            found = {name: np.full(last.sum(), np.nan) for name in (*MEASURES, *SCALE_FREE)}
            for k in np.flatnonzero(kept["outcome"] == 0):
                # Only ReLU networks keep their function when neurons are rescaled.
                relu = self.setting.activation == "relu"
                for name, value in measured(problem, entry.params[f"w/{k}"], invariant=relu).items():
                    found[name][k] = value
        return Computed(kept | found, {}, entry.result)

    def run(self, checkpoint: Any, progress: Any) -> Computed:
        raise AssertionError("it is always composed")


def measured(problem: Any, w: Any, *, invariant: bool, key: int = 0) -> dict[str, float]:
    """All measures at w. The averages and traces have an error of about 10%."""
    from steppe.rates._measured import sharpness_measures

    found: dict[str, float] = sharpness_measures(problem, w, radius=_RADIUS, key=key)
    return found | scale_free(problem, w, invariant=invariant, key=key)


def scale_free(problem: Any, w: Any, *, invariant: bool, key: int = 0) -> dict[str, float]:
    """SCALE_FREE at w. `weighted` is λ_max of |w| H |w|, the Hessian in the coordinates log |w|."""
    import jax.numpy as jnp

    from steppe import linalg, measures
    from steppe.curvature import hessian
    from steppe.estimate import Accuracy

    w = jnp.asarray(w)
    H, size = hessian(problem, w), jnp.abs(w)
    about, eigenvalue = Accuracy(0.1, max_matvecs=200), Accuracy(1e-2, max_matvecs=300)
    estimates = {
        "empirical_fisher": measures.fisher_sharpness(problem, w, empirical=True, accuracy=eigenvalue, key=key),
        "empirical_fisher_trace": measures.fisher_trace(problem, w, empirical=True, accuracy=about, key=key),
        "weighted": linalg.largest(lambda v: size * H(size * v), w.size, accuracy=eigenvalue, key=key).estimate,
    }
    if invariant:
        estimates["invariant"] = measures.invariant_sharpness(problem, w, rtol=1e-2)
    return {name: one.value for name, one in estimates.items()} | {"adaptive_linf": adaptive_linf(problem, w)}


def adaptive_linf(problem: Any, w: Any, *, radius: float = 1e-2, steps: int = 20) -> float:
    """max L(w + |w| ⊙ ε) − L(w) over |εᵢ| ≤ ρ = `radius`, by projected sign ascent from the sign of the gradient.

    A lower bound of the maximum: each step goes a fourth of ρ along the sign of the gradient in ε; the largest value
    on the way counts.
    """
    import jax
    import jax.numpy as jnp

    size, at_rest = jnp.abs(w), problem.loss(w)
    increase = jax.jit(jax.value_and_grad(lambda e: problem.loss(w + size * e) - at_rest))
    e, best = jnp.zeros_like(w), 0.0
    for k in range(steps):
        value, slope = increase(e)
        best = max(best, float(value))
        e = jnp.clip(e + (radius if k == 0 else radius / 4) * jnp.sign(slope), -radius, radius)
    return best
