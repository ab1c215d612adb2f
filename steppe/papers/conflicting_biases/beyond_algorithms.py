"""Beyond the paper, on its example: where gradient descent diverges, and what momentum, SAM and label noise change."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steppe import figures
from steppe.experiments import Experiment, Finding, Shown
from steppe.papers.conflicting_biases.diagonal_runs import Algorithm, DiagonalSweep, Example, converged, example_of
from steppe.papers.conflicting_biases.figures_4_15_16 import FULL, SMOKE, plane, shared_plane
from steppe.papers.conflicting_biases.paper import PAPER
from steppe.papers.conflicting_biases.theory.other_models import ESCAPE
from steppe.store import Computed

_COLOURS = ("blue", "orange", "green")

# The rate at which gradient descent diverges, against the rate beyond which no point of M is stable.


@dataclass(frozen=True)
class Divergence(Experiment, kind="conflicting-biases/divergence"):
    """For each limit x_max/x_min: up to which rate (in η₁) all rates of a grid converge, and the last that does."""

    limits: tuple[float, ...] = (1.1, 1.2, 1.35, 1.5, 1.65, 1.8, 2.0, 2.3, 2.7, 3.3, 4.0, 5.0)
    alpha: float = 0.05
    count: int = 401
    steps: int = 40_000

    def run(self, checkpoint: Any, progress: Any) -> Computed:
        import jax.numpy as jnp

        from steppe import until
        from steppe.dynamics import GD, run_many
        from steppe.networks import diagonal_problem

        rates = np.linspace(0.5, 3.0, self.count)
        curves: dict[str, list[float]] = {"limit": [], "all_below": [], "last": [], "diverges_from": []}
        for limit in self.limits:
            # y = 1, x_max = 1: w can be rescaled, so only the ratio of the entries of x matters.
            problem = diagonal_problem([1.0, 1 / limit], 1.0, start=self.alpha)
            stop = until.loss(1e-20) | until.steps(self.steps)
            runs = run_many(problem, GD(jnp.asarray(rates / 2)), stop=stop)
            fine, gone = runs.ended("reached"), runs.ended("diverged")
            curves["limit"].append(limit)
            # At η_c itself convergence needs more than any number of steps: this is no failure.
            curves["all_below"].append(float(rates[np.argmin(fine | (rates < 1.05)) - 1]))
            curves["last"].append(float(rates[fine].max()))
            curves["diverges_from"].append(float(rates[np.argmax(gone)]))
        return Computed({name: np.array(column) for name, column in curves.items()}, {}, {"step": rates[1] - rates[0]})


def numbers_divergence(entries: Sequence[Any]) -> dict[str, Any]:
    series: list[dict[str, Any]] = []
    for entry, colour in zip(entries, _COLOURS, strict=False):
        curves = entry.curves
        limit = curves["limit"].tolist()
        name = f"α = {entry.spec['alpha']:g}"
        series += [
            {"x": limit, "y": curves["last"].tolist(), "kind": "points", "colour": colour,
             "label": f"{name}: last rate that converges"},
            {"x": limit, "y": curves["all_below"].tolist(), "kind": "crosses", "colour": colour,
             "label": f"{name}: all below converge"},
        ]  # fmt: skip
    ends = np.linspace(1, max(limit), 50)
    series += [
        {"x": ends.tolist(), "y": ends.tolist(), "kind": "dashed", "colour": "ink", "label": "nothing on M is stable"},
        {"x": ends.tolist(), "y": [2.0] * 50, "kind": "dotted", "colour": "ink", "label": "2: one weight escapes"},
    ]
    panel = {"x": "x_max/x_min", "y": "learning rate η/η₁", "series": series, "legend": "lower right",
             "limits": {"y": [0.8, 3.1], "x": [0.95, max(limit) + 0.1]}}  # fmt: skip
    return {"title": "Where gradient descent diverges", "panels": [panel]}


divergence = PAPER.figure(
    "divergence", "the rate at which gradient descent diverges against the theoretical limit",
    runs={"smoke": (Divergence(limits=(1.2, 1.5, 2.0, 3.3), count=126, steps=20_000),),
          "paper": (Divergence(), Divergence(alpha=0.3))},
    show=Shown(numbers_divergence, figures.panels),
)  # fmt: skip


@PAPER.claim(
    "beyond-divergence", "beyond",
    "It diverges near 2η₁, where one weight alone escapes, or at the limit if that is less.",
    "1 within 15%; limit within 2%", needs=(divergence,),
)  # fmt: skip
def diverges_at_two(runs: Sequence[Any]) -> Finding:
    """The rate up to which all converge over 2η₁, if M has flatter points than that; else over the limit."""
    entry = runs[0]
    c = entry.curves
    step = entry.result["step"]
    wide = c["limit"] > 2.2
    ratios = np.where(wide, c["all_below"] / ESCAPE, c["last"] / c["limit"])
    holds = bool((np.abs(ratios[wide] - 1) < 0.15).all() and (np.abs(ratios[c["limit"] < 1.9] - 1) < 0.02 + step).all())
    return Finding(float(ratios[wide].mean()), holds, f"from {ratios.min():.3f} to {ratios.max():.3f}")


# Momentum, SAM and label noise.

_MOMENTA = (0.0, 0.2, 0.5)
_SLOW = 0.3  # the rate (in η₁) of the algorithms that are followed for many steps
_RADIUS = 0.04  # of SAM: smaller than α, since SAM with a radius that reaches across the origin never leaves it


def _momenta(rates: tuple[float, ...]) -> tuple[DiagonalSweep, ...]:
    return tuple(DiagonalSweep(rates, algorithm="heavy-ball" if beta else "gd", strength=beta) for beta in _MOMENTA)


def _algorithms(steps: int) -> tuple[DiagonalSweep, ...]:
    def followed(algorithm: Algorithm, strength: float) -> DiagonalSweep:
        return DiagonalSweep((_SLOW,), algorithm=algorithm, strength=strength, steps=steps, iterates=60, per_decade=12)

    return followed("gd", 0.0), followed("heavy-ball", 0.5), followed("sam", _RADIUS), followed("label-noise", 0.3)


def numbers_edges(entries: Sequence[Any]) -> dict[str, Any]:
    edges, watched = entries[: len(_MOMENTA)], entries[len(_MOMENTA) :]
    example = example_of(entries[0])
    line = np.linspace(0.9, 2.0, 100)
    first: list[dict[str, Any]] = []
    for entry, beta, colour in zip(edges, _MOMENTA, _COLOURS, strict=True):
        ends = converged(entry)
        first += [
            {"x": ends["rate"].tolist(), "y": ends["sharpness"].tolist(), "kind": "points", "colour": colour,
             "label": f"β = {beta:g}"},
            {"x": line.tolist(), "y": (2 * (1 + beta) / line / example.unit).tolist(), "kind": "dashed",
             "colour": colour},
        ]  # fmt: skip
    second: list[dict[str, Any]] = []
    for entry, name, colour in zip(
        watched, ("GD", "heavy ball", "SAM", "label noise"), (*_COLOURS, "red"), strict=True
    ):
        moments = np.asarray(entry.result["moments"])
        # The start, step 0, is not on a logarithmic axis.
        on_M = example.manifold().onto(entry.params["path"][0][1:])
        second.append({"x": moments[1:].tolist(), "y": example.manifold().sharpness(on_M).tolist(), "kind": "line",
                       "colour": colour, "label": name})  # fmt: skip
    floor = 4 * example.y * min(example.x)
    second.append({"x": [1, int(moments[-1])], "y": [floor, floor], "kind": "dotted", "colour": "ink",
                   "label": "least on M"})  # fmt: skip
    return {
        "title": "Beyond · other algorithms, other edges",
        "panels": [
            {"x": "η/η₁", "y": "sharpness of the end", "series": first,
             "title": "momentum moves the edge to 2(1 + β)/η", "limits": {"x": [0.2, 2.1], "y": [0.8, 3.2]}},
            {"x": "steps", "y": "sharpness on M", "log": "x", "series": second,
             "title": f"SAM and noise go on to the flattest (η = {_SLOW:g} η₁)"},
        ],
    }  # fmt: skip


edges = PAPER.figure(
    "edges", "momentum, SAM and label noise against gradient descent",
    runs={"smoke": (*_momenta(SMOKE.rates), *_algorithms(12_000)),
          "paper": (*_momenta(FULL.rates), *_algorithms(300_000))},
    show=Shown(numbers_edges, figures.panels),
)  # fmt: skip


@PAPER.claim(
    "beyond-momentum", "beyond", "With momentum β the edge is 2(1 + β)/η.", "largest ratio in (0.95, 1]", needs=(edges,)
)
def momentum(runs: Sequence[Any]) -> Finding:
    """The largest S/(2/η) over 1 + β: at most 1 for every β, and above the edge of plain gradient descent for β > 0."""
    ratios = []
    for entry, beta in zip(runs, _MOMENTA, strict=False):
        c = converged(entry)
        ratios.append(float((c["sharpness"] * c["rate"]).max()) * example_of(entry).unit / 2 / (1 + beta))
    holds = max(ratios) <= 1 + 1e-9 and min(ratios) > 0.95
    return Finding(max(ratios), holds, ", ".join(f"β = {b:g}: {r:.4f}" for b, r in zip(_MOMENTA, ratios, strict=True)))


def numbers_algorithms(entries: Sequence[Any]) -> dict[str, Any]:
    names = ("gradient descent", "heavy ball, β = 0.5", f"SAM, ρ = {_RADIUS:g}", "label noise, σ = 0.3")
    planes = [plane(entry, 0, name) for entry, name in zip(entries, names, strict=True)]
    title = f"Beyond · four algorithms from one start, η = {_SLOW:g} η₁"
    return {"title": title, "columns": 4, "planes": planes} | shared_plane(entries[0])


algorithms = PAPER.figure(
    "algorithms", "four algorithms in the plane", runs={"smoke": _algorithms(12_000), "paper": _algorithms(300_000)},
    show=Shown(numbers_algorithms, figures.planes),
)  # fmt: skip


@PAPER.claim(
    "beyond-sam-noise", "beyond", "SAM and label noise go on to the flattest point of M at any small η.",
    "sharpness within 1% of the least", needs=(algorithms,),
)  # fmt: skip
def to_the_flattest(runs: Sequence[Any]) -> Finding:
    """Sharpness of the end over the least on M: 1 for SAM and label noise, much larger for descent and heavy ball."""
    example = example_of(runs[0])
    least = 4 * example.y * min(example.x)
    gd, ball, sam, noise = (float(e.curves["sharpness"][0]) / least for e in runs)
    detail = f"GD {gd:.3f}, heavy ball {ball:.3f}, SAM {sam:.4f}, label noise {noise:.4f}"
    return Finding(max(sam, noise), max(sam, noise) < 1.01 and min(gd, ball) > 2, detail)


@PAPER.claim(
    "beyond-sam-trap", "beyond", "SAM whose ρ reaches across the saddle at 0 never leaves it.", "distance < 3α"
)
def sam_trap() -> Finding:
    """SAM with ρ = 2α reaches across the origin: its distance from 0 after 5,000 steps, over α."""
    example, rho = Example(), 2 * Example.alpha
    m, lr = example.manifold(), 0.3 * example.unit
    w = np.full(len(example.x), example.alpha)
    for _ in range(5000):
        g = m.gradient(w)
        w = w - lr * m.gradient(w + rho * g / np.linalg.norm(g))
    away = float(np.linalg.norm(w)) / example.alpha
    return Finding(away, away < 3, f"α = {example.alpha:g}, ρ = {rho:g}; the flow ends at distance 16 α")
