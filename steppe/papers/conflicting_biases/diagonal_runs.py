"""The diagonal network on one example: the example of figures 4, 15 and 16, and training at many rates at once."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from steppe.experiments import Experiment
from steppe.outcome import OUTCOMES
from steppe.papers.conflicting_biases.theory.flow import flow_end, flow_limit, flow_path
from steppe.papers.conflicting_biases.theory.kkt import least_risk
from steppe.papers.conflicting_biases.theory.manifold import Manifold, least_norm, least_sharpness
from steppe.papers.conflicting_biases.theory.risks import risk
from steppe.store import Computed

Algorithm = Literal["gd", "heavy-ball", "sam", "label-noise"]


@dataclass(frozen=True)
class Example:
    """x > 0, y > 0 and the start α·1. Rates are in units of η₁ = 2/S_max = 1/(2 y x_max).

    The paper does not state its example. In ours all its observations can be seen: the least norm generalises better
    than the least sharpness, the best point of M lies between them, and gradient descent diverges at rates at which
    some points of M are still stable.
    """

    x: tuple[float, ...] = (1.0, 0.4)
    y: float = 0.66
    alpha: float = 0.05

    @property
    def unit(self) -> float:
        """η₁, at which 2/η is the sharpness of the least-norm solution; η_c as α → 0."""
        return 1 / (2 * self.y * max(self.x))

    @property
    def limit(self) -> float:
        """The η (in η₁) at which 2/η is the least sharpness on M: beyond it no point of M is stable."""
        return max(self.x) / min(self.x)

    def manifold(self) -> Manifold:
        return Manifold(self.x, self.y)

    def flow(self, count: int = 200) -> Any:
        """Points along the gradient flow from α·1 to its limit."""
        start = np.full(len(self.x), self.alpha)
        return flow_path(self.x, start, np.linspace(0, flow_end(self.x, self.y, start), count))

    def critical(self) -> float:
        """η_c = 2/s_GF in η₁: s_GF is the largest sharpness along the flow."""
        return 2 / float(self.manifold().operator_norm(self.flow(2000)).max()) / self.unit

    def best_rate(self) -> float:
        """The η (in η₁) at which 2/η is the sharpness of M_G, the point of M with least risk."""
        return 2 / float(self.manifold().sharpness(least_risk(self.x, self.y))) / self.unit

    def risks(self) -> dict[str, float]:
        """The risk of the three idealised algorithms."""
        d = len(self.x)
        return {
            "norm": float(risk(least_norm(self.x, self.y).point(d))),
            "sharpness": float(risk(least_sharpness(self.x, self.y).point(d))),
            "optimal": float(risk(least_risk(self.x, self.y))),
        }

    def at_sharpness(self, rates: Any) -> Any:
        """For d = 2: the point of M with S = 2/η (η in η₁), or the limit of the flow if that is flatter."""
        x = np.asarray(self.x)
        target = np.maximum(1 / (2 * np.asarray(rates, dtype=float) * self.unit), self.y * x.min())
        # ⟨x, u⟩ = y and ⟨x², u⟩ = 1/(2η), two equations for two entries.
        u = np.linalg.solve(np.stack([x, x**2]), np.stack([np.full_like(target, self.y), target])).T
        end = flow_limit(x, self.y, self.alpha)
        return np.where((x**2 @ end**2 <= target)[:, None], end, np.sqrt(np.maximum(u, 0)))


@dataclass(frozen=True)
class DiagonalSweep(Experiment, kind="conflicting-biases/diagonal"):
    """One algorithm from α·1 for each rate η = rate · η₁. `strength`: β of heavy ball, ρ of SAM, σ of label noise.

    Of every run it stores the end, the first `iterates` steps, and `per_decade` moments in each decade of steps.
    """

    rates: tuple[float, ...]
    x: tuple[float, ...] = Example.x
    y: float = Example.y
    alpha: float = Example.alpha
    algorithm: Algorithm = "gd"
    strength: float = 0.0
    steps: int = 100_000
    loss: float = 1e-24
    iterates: int = 0
    per_decade: int = 0

    @property
    def example(self) -> Example:
        return Example(self.x, self.y, self.alpha)

    def moments(self) -> list[int]:
        decades = np.logspace(0, np.log10(self.steps), round(self.per_decade * np.log10(self.steps)) + 1)
        late = {round(float(m)) for m in decades} if self.per_decade else set()
        return sorted(set(range(min(self.iterates, self.steps) + 1)) | late)

    def run(self, checkpoint: Any, progress: Any) -> Computed:
        import jax.numpy as jnp

        from steppe import until, when
        from steppe.dynamics import run_many
        from steppe.networks import diagonal_problem

        rates, manifold, moments = np.asarray(self.rates), self.example.manifold(), self.moments()
        stop = until.steps(self.steps)
        if self.algorithm in ("gd", "heavy-ball"):  # SAM and label noise never stop moving: they make all their steps
            stop |= until.loss(self.loss)
        runs = run_many(
            diagonal_problem(self.x, self.y, start=self.alpha),
            self.dynamics(jnp.asarray(rates * self.example.unit)),
            stop=stop,
            record={"w": lambda problem, w: np.asarray(w)},
            when=when.steps(moments),
            checkpoint=checkpoint,
            progress=progress,
        )
        path = runs.records["w"][:, np.isin(runs.moments, moments)]
        fine = ~runs.ended("diverged")
        # A run that has not converged is measured at the multiple of its end that lies on M.
        on_M = np.where(fine[:, None], runs.w, 1.0)
        on_M = manifold.onto(np.where(np.abs(on_M).max(axis=1, keepdims=True) > 0, on_M, 1.0))
        measured = {"sharpness": manifold.sharpness(on_M), "norm": np.sum(on_M**2, axis=1), "risk": risk(on_M)}
        curves = {
            "rate": rates,
            "outcome": np.array([OUTCOMES.index(o) for o in runs.outcome]),
            "steps": runs.steps,
            **{name: np.where(fine, column, np.nan) for name, column in measured.items()},
        }
        result = {"moments": moments, "outcomes": {o: int(runs.ended(o).sum()) for o in OUTCOMES}}
        return Computed(curves, {"w": runs.w, "path": path}, result)

    def dynamics(self, lr: Any) -> Any:
        from steppe.dynamics import GD, SAM, HeavyBall, LabelNoise

        match self.algorithm:
            case "gd":
                return GD(lr)
            case "heavy-ball":
                return HeavyBall(lr, self.strength)
            case "sam":
                return SAM(lr, self.strength, None)
            case "label-noise":
                return LabelNoise(GD(lr), self.strength)


def even(first: float, last: float, count: int) -> tuple[float, ...]:
    """Evenly spaced rates, rounded to six digits.

    >>> even(0.0, 1.0, 5)
    (0.0, 0.25, 0.5, 0.75, 1.0)
    """
    return tuple(round(first + (last - first) * k / (count - 1), 6) for k in range(count))


# Finished runs, read.


def example_of(entry: Any) -> Example:
    return Example(tuple(entry.spec["x"]), entry.spec["y"], entry.spec["alpha"])


def converged(entry: Any, *, above: float = 0.0, below: float = math.inf) -> dict[str, Any]:
    """The curves of the runs that reached their loss, with a rate between these two (in η₁)."""
    c = entry.curves
    keep = (c["outcome"] == OUTCOMES.index("reached")) & (c["rate"] > above) & (c["rate"] < below)
    return {name: column[keep] for name, column in c.items()}
