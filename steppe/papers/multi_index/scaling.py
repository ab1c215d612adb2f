"""Theorems 1 and 2, Lemmas 2 and 4 as scaling laws: flatness of the good and of the bad against the sizes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from steppe.papers.multi_index.resumed import rows
from steppe.papers.multi_index.setting import Activation, model, sigma

if TYPE_CHECKING:
    from steppe.store import Checkpoint, Computed

# One row a size and seed. `bad`: the flattest interpolator with inner weights in a tilted subspace, `bad_loss` its
# population loss, `bad_norm` = ‖a‖² of the least norm; `teacher`: Theorem 4; `pointwise`: below every interpolator;
# `q_low`, `q_high`: the cheapest and the dearest neuron; `singular_*`: of the activations of the bad inner weights.
NAMES = (
    "d", "n", "m", "seed", "exists", "bad", "bad_lower", "bad_loss", "bad_norm", "bad_largest", "lemma5", "teacher",
    "pointwise", "q_low", "q_high", "singular_1", "singular_2", "singular_n", "alignment",
)  # fmt: skip


@dataclass(frozen=True)
class Scaling:
    """A single-index model of the activation without noise, at sizes (d, n, m), each with `seeds` draws."""

    KIND: ClassVar[str] = "multi-index/scaling"

    activation: Activation
    d: tuple[int, ...]
    n: tuple[int, ...]
    m: tuple[int, ...]
    nu: float = 0.3
    seeds: int = 10
    rtol: float = 1e-5

    def compute(self, checkpoint: "Checkpoint | None", progress: Callable[[Any], None] | None) -> "Computed":
        from steppe.store import Computed

        return Computed(rows(NAMES, self.seeds * len(self.d), self._row, checkpoint), {}, {})

    def _row(self, k: int) -> dict[str, float]:
        import math

        import numpy as np

        from steppe.data import multi_index
        from steppe.papers.multi_index import theory

        size, seed = divmod(k, self.seeds)
        d, n, m = self.d[size], self.n[size], self.m[size]
        rng, activation = np.random.default_rng([seed, d, n, m]), sigma(self.activation)
        link, U, _ = model("sum", self.activation, 1, d, rng)
        x, y, *_ = multi_index(link, U, n, key=rng)
        W = theory.within(m, theory.tilted(U, self.nu, key=rng), key=rng)
        f = theory.features(W, x, activation)
        values = np.linalg.svd(f.phi, compute_uv=False)
        student = theory.copies(link, U, m)
        costs = theory.features(student.W, x, activation)
        row = dict.fromkeys(NAMES, math.nan) | {
            "d": d, "n": n, "m": m, "seed": seed, "exists": 0.0, "alignment": theory.alignment(W, U),
            "teacher": float(costs.q @ np.abs(student.a) ** costs.p),
            "pointwise": theory.pointwise(x, y, m, activation), "q_low": f.q.min(), "q_high": f.q.max(),
            "singular_1": values[0], "singular_2": values[1], "singular_n": values[-1],
        }  # fmt: skip
        try:
            best = theory.flattest_interpolator(f.phi, y, f.q, f.p, rtol=self.rtol)
        except theory.NoInterpolatorError:
            return row
        least = theory.least_norm(f.phi, y)
        return row | {
            "exists": 1.0, "bad": best.flatness, "bad_lower": best.lower, "bad_norm": float(least @ least),
            "bad_largest": float(np.abs(least).max()), "lemma5": theory.from_least_norm(f, y, a=least),
            "bad_loss": theory.population_loss(W, best.a, activation, link, U),
        }  # fmt: skip
