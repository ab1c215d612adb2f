"""Theorem B.2 measured: gradient descent from random starts with random rates on random examples, and where it ends."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from steppe.store import Checkpoint, Computed


@dataclass(frozen=True)
class Stability:
    """`examples` draws of (x, y), x of any sign; on each `runs` starts w₀ ~ N(0, 1) with η up to the limit of M."""

    KIND: ClassVar[str] = "conflicting-biases/stability"

    d: int = 3
    depth: int = 2
    examples: int = 10
    runs: int = 400
    steps: int = 20_000
    seed: int = 0

    def compute(self, checkpoint: "Checkpoint | None", progress: Callable[[Any], None] | None) -> "Computed":
        import jax

        with jax.enable_x64(True):
            return self._compute()

    def _compute(self) -> "Computed":
        import jax.numpy as jnp
        import numpy as np

        from steppe.dynamics import GD, run_many
        from steppe.networks._diagonal import shared
        from steppe.papers.conflicting_biases.theory import Manifold
        from steppe.papers.conflicting_biases.theory import manifold as extremes
        from steppe.store import Computed

        rng = np.random.default_rng(self.seed)
        columns: dict[str, list[Any]] = {"limit": [], "sharpness": [], "started": [], "converged": [], "diverged": []}
        for _ in range(self.examples):
            x = rng.normal(size=self.d)
            y = abs(rng.normal()) * np.sign(x[np.argmax(np.abs(x))])
            manifold = Manifold(x, y, self.depth)
            flattest = (
                extremes.least_sharpness(x, y).value
                if self.depth == 2
                else float(manifold.sharpness(extremes.flattest(x, y, self.depth)))
            )
            lr = 2 / flattest * rng.uniform(0.02, 1.2, self.runs)
            starts = rng.normal(size=(self.runs, self.d))
            problem = shared(x, y, depth=self.depth)
            ends = run_many(problem, GD(jnp.asarray(lr)), starts, steps=self.steps, loss=1e-26)
            converged = ends.ended("reached")
            flow_like = np.where(converged[:, None], ends.w, 1.0)
            columns["limit"].append(2 / lr)
            columns["sharpness"].append(np.where(converged, manifold.sharpness(flow_like), np.nan))
            columns["started"].append(manifold.operator_norm(starts))
            columns["converged"].append(converged)
            columns["diverged"].append(ends.ended("diverged"))
        curves = {name: np.concatenate(parts) for name, parts in columns.items()}
        return Computed(curves, {}, {"converged": int(curves["converged"].sum()), "runs": len(curves["limit"])})
