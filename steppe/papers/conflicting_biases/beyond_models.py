"""Beyond the paper, other models: ⟨u ⊙ v, x⟩ on several examples, three weights, more layers, one weight alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from steppe import figures
from steppe.experiments import Experiment, Finding, experiment
from steppe.outcome import OUTCOMES
from steppe.papers.conflicting_biases.diagonal_runs import DiagonalSweep, converged, even, example_of
from steppe.papers.conflicting_biases.paper import PAPER
from steppe.papers.conflicting_biases.theory import other_models
from steppe.papers.conflicting_biases.theory.kkt import least_risk
from steppe.papers.conflicting_biases.theory.manifold import Manifold, flattest
from steppe.papers.conflicting_biases.theory.other_models import EDGE, ESCAPE, FOUR, SIGNS, two_cycle
from steppe.papers.conflicting_biases.theory.risks import risk
from steppe.store import Computed

_COLOURS = ("blue", "orange", "green")

# The form ⟨u ⊙ v, x⟩ on several examples.


@dataclass(frozen=True)
class Factors(Experiment, kind="conflicting-biases/factors"):
    """n examples whose target has two non-zero weights among d; u and v start as Gaussians.

    `strength`: σ of label noise, ρ of 1-SAM.
    """

    algorithm: Literal["gd", "label-noise", "1-sam"]
    lr: float
    strength: float = 0.0
    steps: int = 200_000
    n: int = 6
    d: int = 12
    seed: int = 0

    def data(self) -> tuple[Any, Any, Any, Any]:
        """x, y, and the start u, v."""
        rng = np.random.default_rng(self.seed)
        x = rng.normal(size=(self.n, self.d))
        beta = np.zeros(self.d)
        beta[[1, 4]] = 1.5, -1.0
        return x, x @ beta, rng.normal(size=self.d), rng.normal(size=self.d)

    def run(self, checkpoint: Any, progress: Any) -> Computed:
        from steppe import until, when
        from steppe.dynamics import run
        from steppe.networks import two_factor_problem

        x, y, u, v = self.data()
        problem = two_factor_problem(x, y, u=u, v=v)
        flattest = other_models.flattest(x, y)

        def trace(problem: Any, w: Any) -> float:
            return float(other_models.trace(x, w[: self.d], w[self.d :]))

        def distance(problem: Any, w: Any) -> float:
            return float(np.abs(np.asarray(w[: self.d] * w[self.d :]) - flattest.beta).max())

        done = run(
            problem,
            self.dynamics(),
            stop=until.steps(self.steps),
            record={"trace": trace, "distance": distance},
            when=when.logarithmic(per_decade=10),
            checkpoint=checkpoint,
            progress=progress,
            key=self.seed,
        )
        last = {name: done.records[name][-1].item() for name in ("trace", "distance")}
        result = last | {"least": flattest.trace, "lower": flattest.lower, "outcome": done.outcome}
        return Computed(done.records, {"w": np.asarray(done.w)}, result)

    def dynamics(self) -> Any:
        from steppe.dynamics import GD, SAM, LabelNoise, Schedule, Stage

        match self.algorithm:
            case "gd":
                return GD(self.lr)
            case "label-noise":
                # The noise shrinks β by an amount ∝ η: the last tenth has a tenth of the rate, which undoes this.
                long, last = (LabelNoise(GD(lr), self.strength) for lr in (self.lr, self.lr / 10))
                return Schedule((Stage(long, epochs=self.steps * 9 // 10), Stage(last)))
            case "1-sam":
                return SAM(self.lr, self.strength)


def _factors(steps: int) -> tuple[Factors, ...]:
    return (
        Factors("gd", 0.02, steps=steps),
        Factors("label-noise", 0.05, 1.0, steps=2 * steps),
        Factors("1-sam", 0.02, 0.1, steps=2 * steps),
    )


@PAPER.plot(
    "factors", "the form u ⊙ v on several examples: label noise and 1-SAM find the weighted ℓ1 solution",
    figures.panels, runs={"smoke": _factors(80_000), "paper": _factors(500_000)},
)  # fmt: skip
def factors(entries: Sequence[Any]) -> dict[str, Any]:
    least = entries[0].result["least"]
    panels: list[dict[str, Any]] = []
    for name, label, scale in (
        ("trace", "tr ∇²L over the least", least),
        ("distance", "max |u ⊙ v − weighted ℓ1 solution|", 1.0),
    ):
        series = []
        for entry, colour in zip(entries, _COLOURS, strict=True):
            # The start, step 0, is not on a logarithmic axis.
            steps, values = entry.curves["step"][1:], entry.curves[name][1:] / scale
            title = {"gd": "GD", "label-noise": "label noise", "1-sam": "1-SAM"}[entry.spec["algorithm"]]
            series.append(figures.series(steps, values, "line", colour, title))
        if name == "trace":
            series.append(figures.series([1, int(np.max(steps))], [1, 1], "dotted", "ink", "2 Σ q|β|, least"))
        panels.append({"x": "steps", "y": label, "log": "xy", "series": series})
    size = f"{entries[0].spec['n']} examples, {entries[0].spec['d']} inputs"
    return {"title": f"Beyond · ⟨u ⊙ v, x⟩ on {size}: flattest is sparsest", "panels": panels}


@PAPER.claim(
    "beyond-factors", "beyond",
    "⟨u ⊙ v, x⟩ on n examples: 1-SAM and label noise reach the least trace 2‖q ⊙ β‖₁, a weighted ℓ1 solution.",
    "1-SAM within 2%, label noise within 10%", needs=(factors,),
)  # fmt: skip
def least_trace(runs: Sequence[Any]) -> Finding:
    """tr ∇²L of the end over the least of all interpolators, by a linear program with its dual: 1-SAM, noise, GD."""
    gd, noise, sam = (e.result["trace"] / e.result["least"] for e in runs)
    certified = all(abs(e.result["lower"] / e.result["least"] - 1) < 1e-9 for e in runs)
    away = runs[2].result["distance"]
    detail = f"1-SAM {sam:.4f} (u ⊙ v within {away:.3f}), label noise {noise:.4f}, GD {gd:.3f}"
    return Finding(sam, certified and abs(sam - 1) < 0.02 and abs(noise - 1) < 0.1 and gd > 2, detail)


@PAPER.claim("beyond-conserved", "beyond", "The flow of ⟨u ⊙ v, x⟩ conserves u² − v².", "change < 1e-7")
def conservation() -> Finding:
    """The largest change of u² − v² along the flow of ⟨u ⊙ v, x⟩, by an integrator."""
    from scipy.integrate import solve_ivp

    x, y, u, v = Factors("gd", 0.02).data()
    d = len(u)

    def slope(t: float, w: Any) -> Any:
        pull = x.T @ (x @ (w[:d] * w[d:]) - y) / len(y)
        return -np.concatenate([pull * w[d:], pull * w[:d]])

    end = solve_ivp(slope, (0, 50), np.concatenate([u, v]), method="LSODA", rtol=1e-10, atol=1e-12).y[:, -1]
    moved = float(np.abs(other_models.conserved(end[:d], end[d:]) - other_models.conserved(u, v)).max())
    return Finding(moved, moved < 1e-7, "12 coordinates, to time 50")


# Three weights and more layers.


def _triangle(count: int, steps: int) -> tuple[DiagonalSweep]:
    return (DiagonalSweep(even(0.3, 2.0, count), x=(1.0, 0.6, 0.3), y=0.9, alpha=0.1, steps=steps),)


@PAPER.plot(
    "triangle", "three weights: the solutions as a triangle", figures.simplex,
    runs={"smoke": _triangle(35, 30_000), "paper": _triangle(171, 100_000)},
)  # fmt: skip
def triangle(entries: Sequence[Any]) -> dict[str, Any]:
    (entry,) = entries
    example = example_of(entry)
    x, y = np.asarray(example.x), example.y
    side = 40
    grid = np.array([(i, j, side - i - j) for i in range(side + 1) for j in range(side + 1 - i)]) / side
    w = np.sqrt(grid * y / x)
    sharpness, risks = example.manifold().sharpness(w), risk(w)
    done = entry.curves["outcome"] == OUTCOMES.index("reached")
    rates, ends = entry.curves["rate"][done], entry.params["w"][done]

    def shares(u: Any) -> Any:
        p = u * x / y
        return (p / p.sum(axis=-1, keepdims=True)).round(6).tolist()

    optimal = np.linspace(0.5, example.limit * 0.999, 60).tolist()
    best = np.stack([least_risk(x, y, r * example.unit) for r in optimal])
    return {
        "title": "Beyond · three weights: M is a triangle of the shares xᵢwᵢ²/y",
        "corners": [f"only w{'₁₂₃'[k]}, x{'₁₂₃'[k]} = {x[k]:g}" for k in range(3)],
        "grid": grid.tolist(),
        "panels": [
            {"title": "sharpness (linear on M)", "values": sharpness.tolist(),
             "levels": np.linspace(sharpness.min(), sharpness.max(), 8)[1:-1].tolist()},
            {"title": "risk", "values": risks.tolist(),
             "levels": np.quantile(risks, [0.05, 0.2, 0.4, 0.6, 0.8]).tolist()},
        ],
        "ends": [{"p": p, "rate": float(r)} for p, r in zip(shares(ends**2), rates, strict=True)],
        "flow": shares(example.flow(60) ** 2),
        "kkt": [{"p": p, "rate": r} for p, r in zip(shares(best**2), optimal, strict=True)],
    }  # fmt: skip


@PAPER.claim(
    "beyond-triangle", "beyond", "Three weights: training ends at S ≈ 2/η, but not at the best such point.",
    "S η/2 ≤ 1, median > 0.95", needs=(triangle,),
)  # fmt: skip
def end_of_three_weights(runs: Sequence[Any]) -> Finding:
    """The largest S/(2/η) of an end; the ends must not generalise better than the best point of M."""
    (entry,) = runs
    example, c = example_of(entry), converged(entry, above=1.05)
    ratio = c["sharpness"] * c["rate"] * example.unit / 2
    best = min(float(r) for r in c["risk"]) / example.risks()["optimal"]
    holds = float(ratio.max()) <= 1 and float(np.median(ratio)) > 0.95 and best >= 1
    detail = f"median {np.median(ratio):.3f}; least risk {best:.3f} times the best on M"
    return Finding(float(ratio.max()), holds, detail)


@PAPER.claim(
    "beyond-depth", "beyond", "From three layers on the flattest solution is dense, w^L ∝ x^{−L/(L−2)}.",
    "its sharpness over that of the best single weight < 1",
)  # fmt: skip
def depth_dense() -> Finding:
    """For L = 3 and 4 the flattest solution uses every weight: its sharpness over that of the best single weight."""
    x, y, ratios = np.array([1.0, 0.6, 0.3]), 0.9, []
    for L in (3, 4):
        m = Manifold(x, y, L)
        w = flattest(x, y, L)
        single = min(float(m.sharpness(m.onto(row))) for row in np.eye(3))
        ratios.append(float(m.sharpness(w)) / single)
        rng = np.random.default_rng(0)
        for _ in range(200):
            other = m.onto(np.abs(w + 0.3 * rng.normal(size=3)) + 1e-3)
            ratios.append(1.0 if float(m.sharpness(other)) < float(m.sharpness(w)) * (1 - 1e-12) else 0.0)
    return Finding(ratios[0], max(ratios) < 1, "no random neighbour on M is flatter")


# One weight past its edge of stability.


@experiment("conflicting-biases/bifurcation")
def orbits(
    checkpoint: Any, progress: Any, *, first: float = 0.85, last: float = 2.05, count: int = 961, burn: int = 4000,
    keep: int = 120, start: float = 0.1,
) -> Computed:  # fmt: skip
    """z ← z(1 + a(1 − z²)) for `count` values of a = η/η_c on [first, last]; the last `keep` iterates of each."""
    a = np.linspace(first, last, count)
    z = other_models.orbits(a, start=start, burn=burn, keep=keep)
    exponents = other_models.lyapunov(a, start=start, burn=burn, keep=2000)
    return Computed({"a": a, "lyapunov": exponents}, {"z": z}, {"escaped": int(np.isnan(z[:, -1]).sum())})


@PAPER.plot(
    "bifurcation", "one weight past its edge of stability: period doubling to chaos", figures.bifurcation,
    runs={"smoke": (orbits(count=241, burn=1500, keep=64),), "paper": (orbits(),)},
)  # fmt: skip
def bifurcation(entries: Sequence[Any]) -> dict[str, Any]:
    (entry,) = entries
    a, z = entry.curves["a"], entry.params["z"]
    escaped = np.isnan(z[:, -1])
    stable, cycle = np.linspace(a[0], EDGE, 20), np.linspace(EDGE, FOUR, 60)
    both = np.array([two_cycle(v) for v in cycle])
    return {
        "title": "Beyond · one weight past its edge of stability: w ← w(1 + 2ηx(y − xw²))",
        "a": a.tolist(),
        "orbits": [row[np.isfinite(row)].round(5).tolist() for row in z],
        "lyapunov": [None if gone else float(v) for v, gone in zip(entry.curves["lyapunov"], escaped, strict=True)],
        "curves": [
            {"a": stable.tolist(), "z": [1.0] * 20, "label": "the minimum"},
            {"a": cycle.tolist(), "z": both[:, 0].tolist(), "label": "period 2, exactly: z² = s/a, s + 1/s = 1 + a"},
            {"a": cycle.tolist(), "z": both[:, 1].tolist(), "label": "… and z² = 1/(as)"},
        ],
        "places": [
            {"at": EDGE, "label": "a = 1: sharpness 2/η"},
            {"at": FOUR, "label": "√5 − 1: period 4"},
            {"at": SIGNS, "label": "√(27/4) − 1: signs mix"},
            {"at": ESCAPE, "label": "2: escape"},
        ],
    }  # fmt: skip


@PAPER.claim(
    "beyond-doubling", "beyond",
    "One weight: the orbit of period 2 is z² = s/a, 1/(as); period 4 begins at a = √5 − 1, divergence at a = 2.",
    "distance to the orbit < 1e-6", needs=(bifurcation,),
)  # fmt: skip
def doubling(runs: Sequence[Any]) -> Finding:
    """The orbits against theory: the largest distance to the exact 2-cycle, and where more than two values appear."""
    (entry,) = runs
    a, z = entry.curves["a"], entry.params["z"]
    cycling = (a > 1.02) & (a < FOUR - 0.02)
    exact = np.array([two_cycle(v) for v in a[cycling]])
    away = np.abs(np.sort(z[cycling, -2:], axis=1) - np.sort(exact, axis=1)).max()
    count = np.array([len(np.unique(row[-16:].round(4))) for row in z])
    four = float(a[np.argmax((count > 2) & (a > 1.1))])
    escape = float(a[np.isnan(z[:, -1])].min())
    step = float(a[1] - a[0])
    holds = float(away) < 1e-6 and abs(four - FOUR) < 2 * step + 5e-3 and abs(escape - ESCAPE) < 2 * step
    detail = f"period 4 from {four:.4f} (√5 − 1 = {FOUR:.4f}), escape from {escape:.4f}"
    return Finding(float(away), holds, detail)
