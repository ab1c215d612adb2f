"""Theorem 3, Lemma 13, Proposition 2: flattest interpolators of slightly noisy labels, as the sample grows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from steppe.papers.multi_index.resumed import rows
from steppe.papers.multi_index.setting import Activation, model, sigma

if TYPE_CHECKING:
    from steppe.store import Checkpoint, Computed

# One row a size and seed. `flatness`, `loss`, `largest` = ‖a‖_∞: of the flattest interpolator; `patched*`: of Lemma
# 13's; `spoiled_loss`: the largest loss found among interpolators of `budget` times its flatness; `teacher`: the
# flatness of Theorem 4's network, which fits the labels but for the noise; `alone*`: one neuron along u among random
# ones, labels without noise.
NAMES = (
    "d", "n", "m", "seed", "flatness", "lower", "loss", "largest", "patched", "patched_loss", "patched_largest",
    "spoiled_loss", "teacher", "alone", "alone_largest", "alone_loss",
)  # fmt: skip


@dataclass(frozen=True)
class Generalising:
    """Half of the inner weights are the link's directions, the others random; label noise of variance level/n."""

    KIND: ClassVar[str] = "multi-index/generalising"

    activation: Activation
    d: tuple[int, ...]
    n: tuple[int, ...]
    m: tuple[int, ...]
    r: int = 1
    level: float = 0.1
    budget: float = 2.0
    seeds: int = 10
    rtol: float = 1e-5

    def compute(self, checkpoint: "Checkpoint | None", progress: Callable[[Any], None] | None) -> "Computed":
        from steppe.store import Computed

        return Computed(rows(NAMES, self.seeds * len(self.d), self._row, checkpoint), {}, {})

    def _row(self, k: int) -> dict[str, float]:
        import numpy as np

        from steppe.data import multi_index
        from steppe.papers.multi_index import theory

        size, seed = divmod(k, self.seeds)
        d, n, m = self.d[size], self.n[size], self.m[size]
        rng, activation = np.random.default_rng([seed, d, n, m]), sigma(self.activation)
        link, U, _ = model("sum", self.activation, self.r, d, rng)
        x, y, *_ = multi_index(link, U, n, noise=(self.level / n) ** 0.5, key=rng)
        student = theory.copies(link, U, m // 2)
        extra = theory.within(m - m // 2, np.eye(d), key=rng)
        both = theory.patched(student, extra, x, y, activation)
        f = theory.features(both.W, x, activation)
        best = theory.flattest_interpolator(f.phi, y, f.q, f.p, rtol=self.rtol)
        full = theory.copies(link, U, m)
        costs = theory.features(full.W, x, activation)
        teacher = float(costs.q @ np.abs(full.a) ** costs.p)
        spoiled = theory.spoiled(both.W, best.a, f, activation, flatness=self.budget * best.flatness)
        one = np.vstack([U[:1], extra])
        g = theory.features(one, x, activation)
        alone = theory.flattest_interpolator(g.phi, activation(x @ U[0]), g.q, g.p, rtol=self.rtol)
        single, *_ = model("sum", self.activation, 1, d, rng)
        return {
            "d": d, "n": n, "m": m, "seed": seed, "flatness": best.flatness, "lower": best.lower, "teacher": teacher,
            "loss": theory.population_loss(both.W, best.a, activation, link, U),
            "largest": float(np.abs(best.a).max()), "patched": float(f.q @ np.abs(both.a) ** f.p),
            "patched_loss": theory.population_loss(both.W, both.a, activation, link, U),
            "patched_largest": float(np.abs(both.a).max()),
            "spoiled_loss": theory.population_loss(both.W, spoiled, activation, link, U),
            "alone": alone.flatness, "alone_largest": float(np.abs(alone.a).max()),
            "alone_loss": theory.population_loss(one, alone.a, activation, single, U[:1]),
        }  # fmt: skip
