"""The experiment of section 6: the flattest interpolator for inner weights of correlation ν, over a grid of ν."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steppe.experiments import Experiment
from steppe.papers.multi_index.setting import LABELS, Activation, LinkName, model, rows, sigma
from steppe.store import Computed

# One row for each ν, NaN where no interpolator exists. min ∈ [`lower`, `flatness`]; `lemma5`: the bound from the least
# norm; `pointwise`: the bound for any inner weights; `largest` = ‖a‖_∞; `total` = ‖a‖₁; `loss`: in closed form, NaN
# where there is none; `sampled`: on fresh data, with standard error `error`. Both losses exclude the noise of the
# labels. `singular_1`, `_2`, `_n`: of Φ; `alignment`, `closest`: of Definition 2.
COLUMNS = (
    "nu", "exists", "rank", "flatness", "lower", "lemma5", "pointwise", "largest", "total", "loss", "sampled", "error",
    "singular_1", "singular_2", "singular_n", "alignment", "closest",
)  # fmt: skip


@dataclass(frozen=True)
class Interpolators(Experiment, kind="multi-index/interpolators"):
    """`count` values of ν, log-spaced on [low, high]; one draw of the data, and one of inner weights for each ν."""

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

    def run(self, checkpoint: Any, progress: Any) -> Computed:
        from steppe.data import multi_index

        rng = np.random.default_rng([self.seed, 0])
        link, U, directions = model(self.link, self.activation, self.r, self.d, rng)
        x, y, *_ = multi_index(link, U, self.n, noise=self.noise, key=rng)
        grid = np.geomspace(self.low, self.high, self.count)
        curves = rows(
            COLUMNS, self.count, lambda k: self._row(link, U, directions, x, y, float(grid[k]), k), checkpoint
        )  # fmt: skip
        found = curves["exists"] > 0
        gaps = (1 - curves["lower"] / curves["flatness"])[found]
        result = {"missing": int((~found).sum()), "gap": float(gaps.max(initial=0.0))}
        return Computed(curves, {}, result)

    def _row(self, link: Any, U: Any, directions: Any, x: Any, y: Any, nu: float, k: int) -> dict[str, float]:
        from steppe.data.links import Expansion
        from steppe.papers.multi_index import theory

        rng, activation = np.random.default_rng([self.seed, 2, k]), sigma(self.activation)
        W = theory.correlated(self.m, directions, nu, one_sided=self.one_sided, key=rng)
        f = theory.features(W, x, activation)
        left, values, right = np.linalg.svd(f.phi, full_matrices=False)
        measured = theory.conditions(W, directions)
        row = dict.fromkeys(COLUMNS, math.nan) | {
            "nu": nu, "exists": 0.0, "rank": float(np.sum(values > 1e-11 * values[0])), "singular_1": values[0],
            "singular_2": values[1], "singular_n": values[self.n - 1], "alignment": measured.alignment,
            "closest": measured.closest, "pointwise": theory.pointwise(x, y, self.m, activation),
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


@dataclass(frozen=True, eq=False)
class Group:
    """All seeds of one setting: its spec without the seed, and its columns, of shape (seeds, values of ν)."""

    spec: Mapping[str, Any]
    columns: Mapping[str, Any]

    @property
    def name(self) -> str:
        noise = f", noise {self.spec['noise']:g}" if self.spec["noise"] else ""
        return LABELS[self.spec["activation"]] + noise

    @property
    def nu(self) -> Any:
        return self.columns["nu"][0]

    @property
    def found(self) -> Any:
        """Where an interpolator exists."""
        return self.columns["exists"] > 0

    @property
    def loss(self) -> Any:
        """In closed form where there is one, else sampled."""
        return self.columns["sampled" if self.spec["link"] == "quadratic-form" else "loss"]

    def median(self, name: str) -> Any:
        """Over the seeds; NaN at a ν where at least half of the seeds have no interpolator."""
        values = self.loss if name == "loss" else self.columns[name]
        kept = np.where(self.found.mean(axis=0) > 0.5, values, np.nan)
        bare = np.isnan(kept).all(axis=0)
        return np.where(bare, np.nan, np.nanmedian(np.where(bare, 0.0, kept), axis=0))

    def power(self) -> float:
        """E g², the loss of predicting 0: in closed form, or from a sample."""
        from steppe.data.links import Expansion
        from steppe.papers.multi_index.theory import population_loss, sampled_loss

        spec = self.spec
        link, U, _ = model(spec["link"], spec["activation"], spec["r"], spec["d"], np.random.default_rng(0))
        nothing = np.eye(1, spec["d"]), [0.0], sigma(spec["activation"])
        if isinstance(link, Expansion):
            return population_loss(*nothing, link, U)
        return sampled_loss(*nothing, link, U).value


def groups(runs: Sequence[Any]) -> list[Group]:
    """The settings, in the order of their first runs."""
    found: dict[str, list[Any]] = {}
    for run in runs:
        key = repr(sorted((k, v) for k, v in run.spec.items() if k != "seed"))
        found.setdefault(key, []).append(run)
    tables = []
    for same in found.values():
        curves = [run.curves for run in same]
        columns = {name: np.stack([c[name] for c in curves]) for name in curves[0]}
        tables.append(Group({k: v for k, v in same[0].spec.items() if k != "seed"}, columns))
    return tables
