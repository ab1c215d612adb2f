"""The experiment of section 6: the flattest interpolator for inner weights of correlation ν, over a grid of ν."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steppe.experiments import experiment
from steppe.papers.multi_index.setting import CONSTANTS, LABELS, Activation, LinkName, model, rows, sigma
from steppe.store import Computed

# One row for each ν, NaN where no interpolator exists. min ∈ [`lower`, `flatness`]; `lemma5`: the bound from the least
# norm; `pointwise`: the bound for any inner weights; `largest` = ‖a‖_∞; `total` = ‖a‖₁; `loss`: in closed form, NaN
# where there is none; `sampled`: on fresh data, with standard error `error`. Both losses exclude the noise of the
# labels. `singular_1`, `_2`, `_n`: of Φ; `alignment`, `closest`: of Definition 2.
COLUMNS = (
    "nu", "exists", "rank", "flatness", "lower", "lemma5", "pointwise", "largest", "total", "loss", "sampled", "error",
    "singular_1", "singular_2", "singular_n", "alignment", "closest",
)  # fmt: skip


@experiment("multi-index/interpolators")
def interpolators(
    checkpoint: Any, progress: Any, *, link: LinkName = "sum", activation: Activation = "relu", r: int = 1,
    noise: float = 0.0, one_sided: bool = False, d: int = 50, n: int = 250, m: int = 1000, low: float = 0.01,
    high: float = 0.99, count: int = 20, fresh: int = 2000, rtol: float = 1e-5, seed: int = 0,
) -> Computed:  # fmt: skip
    """`count` values of ν, log-spaced on [low, high]; one draw of the data, and one of inner weights for each ν."""
    from steppe.data import multi_index
    from steppe.data.links import Expansion, Shifted
    from steppe.papers.multi_index import theory

    of_data, act = np.random.default_rng([seed, 0]), sigma(activation)
    g, U, directions = model(link, activation, r, d, of_data)
    x, y, *_ = multi_index(g, U, n, noise=noise, key=of_data)
    grid = np.geomspace(low, high, count)

    def row(k: int) -> dict[str, float]:
        rng = np.random.default_rng([seed, 2, k])
        W = theory.correlated(m, directions, float(grid[k]), one_sided=one_sided, key=rng)
        f = theory.features(W, x, act)
        left, values, right = np.linalg.svd(f.phi, full_matrices=False)
        measured, rank = theory.conditions(W, directions), int(np.sum(values > 1e-11 * values[0]))
        found = dict.fromkeys(COLUMNS, math.nan) | {
            "nu": grid[k], "exists": 0.0, "rank": rank, "singular_1": values[0], "singular_2": values[1],
            "singular_n": values[n - 1], "alignment": measured.alignment, "closest": measured.closest,
            "pointwise": theory.pointwise(x, y, m, act),
        }  # fmt: skip
        try:
            best = theory.flattest_interpolator(f.phi, y, f.q, f.p, rtol=rtol)
        except theory.NoInterpolatorError:
            return found
        least = right[:rank].T @ (left[:, :rank].T @ y / values[:rank])
        sampled = theory.sampled_loss(W, best.a, act, g, U, n=fresh, key=rng)
        exact = theory.population_loss(W, best.a, act, g, U) if isinstance(g, Expansion | Shifted) else math.nan
        return found | {
            "exists": 1.0, "flatness": best.flatness, "lower": best.lower, "largest": float(np.abs(best.a).max()),
            "lemma5": theory.from_least_norm(f, y, a=least), "total": float(np.abs(best.a).sum()),
            "sampled": sampled.value, "error": (sampled.upper - sampled.value) / 4, "loss": exact,
        }  # fmt: skip

    curves = rows(COLUMNS, count, row, checkpoint)
    exists = curves["exists"] > 0
    gaps = (1 - curves["lower"] / curves["flatness"])[exists]
    return Computed(curves, {}, {"missing": int((~exists).sum()), "gap": float(gaps.max(initial=0.0))})


@dataclass(frozen=True, eq=False)
class Group:
    """All seeds of one setting: its spec without the seed, and its columns, of shape (seeds, values of ν)."""

    spec: Mapping[str, Any]
    columns: Mapping[str, Any]

    @property
    def name(self) -> str:
        noise = f", noise {self.spec['noise']:g}" if self.spec["noise"] else ""
        constant = f" + {CONSTANTS[self.spec['link']]:g}" if self.spec["link"] in CONSTANTS else ""
        return LABELS[self.spec["activation"]] + constant + noise

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
        from steppe.data.links import Expansion, Shifted
        from steppe.papers.multi_index.theory import population_loss, sampled_loss

        spec = self.spec
        link, U, _ = model(spec["link"], spec["activation"], spec["r"], spec["d"], np.random.default_rng(0))
        nothing = np.eye(1, spec["d"]), [0.0], sigma(spec["activation"])
        if isinstance(link, Expansion | Shifted):
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
