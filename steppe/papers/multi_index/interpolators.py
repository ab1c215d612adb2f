"""The experiment of section 6: the flattest interpolator for inner weights of correlation ν, over a grid of ν."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from steppe.papers.multi_index.resumed import rows
from steppe.papers.multi_index.setting import Activation, LinkName, model, sigma

if TYPE_CHECKING:
    from steppe.store import Checkpoint, Computed

# One row a ν. `flatness` ≥ min ≥ `lower`; `lemma5`: the bound from the least norm; `largest` = ‖a‖_∞, `total` = ‖a‖₁;
# `loss` in closed form (NaN where there is none), `sampled` on fresh data ± `error`, one standard error, all without
# the noise of the labels; `singular_1`, `_2`, `_n`: of Φ. NaN where there is no interpolator.
NAMES = (
    "nu", "exists", "rank", "flatness", "lower", "lemma5", "pointwise", "largest", "total", "loss", "sampled", "error",
    "singular_1", "singular_2", "singular_n", "alignment", "closest",
)  # fmt: skip


@dataclass(frozen=True)
class Interpolators:
    """`count` values of ν, log-spaced on [low, high]; one draw of data and one of inner weights for each ν."""

    KIND: ClassVar[str] = "multi-index/interpolators"

    link: LinkName = "sum"
    activation: Activation = "relu"
    r: int = 1
    noise: float = 0.0
    one_sided: bool = False
    d: int = 50
    n: int = 250
    m: int = 1000
    low: float = 0.01
    high: float = 0.99
    count: int = 20
    fresh: int = 2000
    rtol: float = 1e-5
    seed: int = 0

    def compute(self, checkpoint: "Checkpoint | None", progress: Callable[[Any], None] | None) -> "Computed":
        import numpy as np

        from steppe.data import multi_index
        from steppe.store import Computed

        rng = np.random.default_rng([self.seed, 0])
        link, U, seen = model(self.link, self.activation, self.r, self.d, rng)
        x, y, *_ = multi_index(link, U, self.n, noise=self.noise, key=rng)
        grid = np.geomspace(self.low, self.high, self.count)
        curves = rows(NAMES, self.count, lambda k: self._row(link, U, seen, x, y, float(grid[k]), k), checkpoint)
        found = curves["exists"] > 0
        gaps = (1 - curves["lower"] / curves["flatness"])[found]
        result = {"missing": int((~found).sum()), "gap": float(gaps.max(initial=0.0))}
        return Computed(curves, {}, result)

    def _row(self, link: Any, U: Any, seen: Any, x: Any, y: Any, nu: float, k: int) -> dict[str, float]:
        import numpy as np

        from steppe.data._multi_index import Expansion
        from steppe.papers.multi_index import theory

        rng, activation = np.random.default_rng([self.seed, 2, k]), sigma(self.activation)
        W = theory.correlated(self.m, seen, nu, one_sided=self.one_sided, key=rng)
        f = theory.features(W, x, activation)
        left, values, right = np.linalg.svd(f.phi, full_matrices=False)
        met = theory.conditions(W, seen)
        row = dict.fromkeys(NAMES, math.nan) | {
            "nu": nu, "exists": 0.0, "rank": float(np.sum(values > 1e-11 * values[0])), "singular_1": values[0],
            "singular_2": values[1], "singular_n": values[self.n - 1], "alignment": met.alignment,
            "closest": met.closest, "pointwise": theory.pointwise(x, y, self.m, activation),
        }  # fmt: skip
        try:
            best = theory.flattest_interpolator(f.phi, y, f.q, f.p, rtol=self.rtol)
        except theory.NoInterpolatorError:
            return row
        kept = int(row["rank"])
        least = right[:kept].T @ (left[:, :kept].T @ y / values[:kept])
        fresh = theory.sampled_loss(W, best.a, activation, link, U, n=self.fresh, key=rng)
        row |= {
            "exists": 1.0, "flatness": best.flatness, "lower": best.lower, "largest": float(np.abs(best.a).max()),
            "lemma5": theory.from_least_norm(f, y, a=least), "total": float(np.abs(best.a).sum()),
            "sampled": fresh.value, "error": (fresh.upper - fresh.value) / 4,
        }  # fmt: skip
        if isinstance(link, Expansion):
            row["loss"] = theory.population_loss(W, best.a, activation, link, U)
        return row
