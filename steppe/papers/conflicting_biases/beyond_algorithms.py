"""Beyond the paper, on its example: where gradient descent diverges, and what momentum, SAM and label noise change."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steppe import figures
from steppe.experiments import Finding, experiment
from steppe.papers.conflicting_biases.diagonal_runs import Algorithm, DiagonalSweep, Example, converged, example_of
from steppe.papers.conflicting_biases.figures_4_15_16 import FULL, SMOKE, plane, shared_plane
from steppe.papers.conflicting_biases.paper import PAPER
from steppe.papers.conflicting_biases.theory.other_models import ESCAPE
from steppe.store import Computed

_COLOURS = ("blue", "orange", "green")

# The rate at which gradient descent diverges, against the rate beyond which no point of M is stable.


@experiment("conflicting-biases/divergence")
def diverging_rates(
    checkpoint: Any, progress: Any, *,
    limits: tuple[float, ...] = (1.1, 1.2, 1.35, 1.5, 1.65, 1.8, 2.0, 2.3, 2.7, 3.3, 4.0, 5.0),
    alpha: float = 0.05, count: int = 401, steps: int = 40_000,
) -> Computed:  # fmt: skip
    """For each limit x_max/x_min: the rate (in η₁) up to which a grid of rates converges, and the last that does."""
    import jax.numpy as jnp

    from steppe import until
    from steppe.dynamics import GD, run_many
    from steppe.networks import diagonal_problem

    rates = np.linspace(0.5, 3.0, count)
    curves: dict[str, list[float]] = {"limit": [], "all_below": [], "last": [], "diverges_from": []}
    for limit in limits:
        # y = 1, x_max = 1: w can be rescaled, so only the ratio of the entries of x matters.
        problem = diagonal_problem([1.0, 1 / limit], 1.0, start=alpha)
        runs = run_many(problem, GD(jnp.asarray(rates / 2)), stop=until.loss(1e-20) | until.steps(steps))
        fine, gone = runs.ended("reached"), runs.ended("diverged")
        curves["limit"].append(limit)
        # At η_c itself no number of steps suffices for convergence: this is no failure.
        curves["all_below"].append(float(rates[np.argmin(fine | (rates < 1.05)) - 1]))
        curves["last"].append(float(rates[fine].max()))
        curves["diverges_from"].append(float(rates[np.argmax(gone)]))
    return Computed({name: np.array(column) for name, column in curves.items()}, {}, {"step": rates[1] - rates[0]})


@PAPER.plot(
    "divergence", "the rate at which gradient descent diverges against the theoretical limit", figures.panels,
    runs={"smoke": (diverging_rates(limits=(1.2, 1.5, 2.0, 3.3), count=126, steps=20_000),),
          "paper": (diverging_rates(), diverging_rates(alpha=0.3))},
)  # fmt: skip
def divergence(entries: Sequence[Any]) -> dict[str, Any]:
    series: list[dict[str, Any]] = []
    for entry, colour in zip(entries, _COLOURS, strict=False):
        curves, name = entry.curves, f"α = {entry.spec['alpha']:g}"
        limit = curves["limit"]
        series += [
            figures.series(limit, curves["last"], "points", colour, f"{name}: last rate that converges"),
            figures.series(limit, curves["all_below"], "crosses", colour, f"{name}: all below converge"),
        ]
    ends = np.linspace(1, max(limit), 50)
    series += [
        figures.series(ends, ends, "dashed", "ink", "no point of M is stable above"),
        figures.series(ends, [2.0] * 50, "dotted", "ink", "2: one weight alone diverges"),
    ]
    panel = {"x": "x_max/x_min", "y": "learning rate η/η₁", "series": series, "legend": "lower right",
             "limits": {"y": [0.8, 3.1], "x": [0.95, max(limit) + 0.1]}}  # fmt: skip
    return {"title": "Where gradient descent diverges", "panels": [panel]}


@PAPER.claim(
    "beyond-divergence", "beyond",
    "Gradient descent diverges near 2η₁, where one weight alone diverges, or at the limit of M if that is less.",
    "within 15% of 2η₁; within 2% of the limit", needs=(divergence,),
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
_SLOW = (0.15, 0.2, 0.25, 0.3)  # rates (in η₁) of the algorithms that are followed for many steps; the last is shown
_RADIUS = 0.04  # of SAM: smaller than α, since SAM with a radius that reaches across the origin never leaves it


def _momenta(rates: tuple[float, ...]) -> tuple[DiagonalSweep, ...]:
    return tuple(DiagonalSweep(rates, algorithm="heavy-ball" if beta else "gd", strength=beta) for beta in _MOMENTA)


def _algorithms(steps: int, rates: tuple[float, ...] = _SLOW) -> tuple[DiagonalSweep, ...]:
    def followed(algorithm: Algorithm, strength: float) -> DiagonalSweep:
        return DiagonalSweep(rates, algorithm=algorithm, strength=strength, steps=steps, iterates=60, per_decade=12)

    return followed("gd", 0.0), followed("heavy-ball", 0.5), followed("sam", _RADIUS), followed("label-noise", 0.3)


@PAPER.plot(
    "edges", "momentum, SAM and label noise against gradient descent", figures.panels,
    runs={"smoke": (*_momenta(SMOKE.rates), *_algorithms(16_000, _SLOW[2:])),
          "paper": (*_momenta(FULL.rates), *_algorithms(300_000))},
)  # fmt: skip
def edges(entries: Sequence[Any]) -> dict[str, Any]:
    swept, watched = entries[: len(_MOMENTA)], entries[len(_MOMENTA) :]
    example = example_of(entries[0])
    line = np.linspace(0.9, 2.0, 100)
    first: list[dict[str, Any]] = []
    for entry, beta, colour in zip(swept, _MOMENTA, _COLOURS, strict=True):
        ends = converged(entry)
        first += [
            figures.series(ends["rate"], ends["sharpness"], "points", colour, f"β = {beta:g}"),
            figures.series(line, 2 * (1 + beta) / line / example.unit, "dashed", colour),
        ]
    second: list[dict[str, Any]] = []
    for entry, name, colour in zip(
        watched, ("GD", "heavy ball", "SAM", "label noise"), (*_COLOURS, "red"), strict=True
    ):
        moments = np.asarray(entry.result["moments"])
        # The start, step 0, is not on a logarithmic axis.
        on_M = example.manifold().onto(entry.params["path"][-1][1:])
        second.append(figures.series(moments[1:], example.manifold().sharpness(on_M), "line", colour, name))
    floor = 4 * example.y * min(example.x)
    second.append(figures.series([1, int(moments[-1])], [floor, floor], "dotted", "ink", "least on M"))
    return {
        "title": "Beyond · other algorithms, other edges",
        "panels": [
            {"x": "η/η₁", "y": "sharpness of the end", "series": first,
             "title": "momentum moves the edge to 2(1 + β)/η", "limits": {"x": [0.2, 2.1], "y": [0.8, 3.2]}},
            {"x": "steps", "y": "sharpness on M", "log": "x", "series": second,
             "title": f"SAM and noise go on to the flattest (η = {_SLOW[-1]:g} η₁)"},
        ],
    }  # fmt: skip


@PAPER.claim(
    "beyond-momentum", "beyond", "With momentum β the edge of stability is 2(1 + β)/η.",
    "largest final sharpness over it in (0.95, 1]", needs=(edges,),
)  # fmt: skip
def momentum(runs: Sequence[Any]) -> Finding:
    """The largest S/(2/η) over 1 + β: at most 1 for every β, and above the edge of plain gradient descent for β > 0."""
    ratios = []
    for entry, beta in zip(runs, _MOMENTA, strict=False):
        c = converged(entry)
        ratios.append(float((c["sharpness"] * c["rate"]).max()) * example_of(entry).unit / 2 / (1 + beta))
    holds = max(ratios) <= 1 + 1e-9 and min(ratios) > 0.95
    return Finding(max(ratios), holds, ", ".join(f"β = {b:g}: {r:.4f}" for b, r in zip(_MOMENTA, ratios, strict=True)))


@PAPER.plot(
    "algorithms", "four algorithms in the plane", figures.planes,
    runs={"smoke": _algorithms(16_000, _SLOW[2:]), "paper": _algorithms(300_000)},
)  # fmt: skip
def algorithms(entries: Sequence[Any]) -> dict[str, Any]:
    names = ("gradient descent", "heavy ball, β = 0.5", f"SAM, ρ = {_RADIUS:g}", "label noise, σ = 0.3")
    planes = [plane(entry, -1, name) for entry, name in zip(entries, names, strict=True)]
    title = f"Beyond · four algorithms from one start, η = {_SLOW[-1]:g} η₁"
    return {"title": title, "columns": 4, "planes": planes} | shared_plane(entries[0])


@PAPER.claim(
    "beyond-sam-noise", "beyond",
    "At every small rate SAM and label noise move on to the flattest point of M; descent and momentum do not.",
    "final sharpness within 1% of the least; of the others more than twice it", needs=(algorithms,),
)  # fmt: skip
def to_the_flattest(runs: Sequence[Any]) -> Finding:
    """The share of runs, one for each rate and algorithm, whose last sharpness over the least on M is as stated."""
    example, good, against = example_of(runs[0]), [], []
    least = 4 * example.y * min(example.x)
    for entry, name, moves in zip(
        runs, ("descent", "heavy ball", "SAM", "label noise"), (False, False, True, True), strict=True
    ):
        for rate, sharpness in zip(entry.spec["rates"], entry.curves["sharpness"] / least, strict=True):
            good.append(bool(sharpness < 1.01 if moves else sharpness > 2))
            against += [] if good[-1] else [f"{name} at {rate:g} η₁ ({sharpness:.3f})"]
    detail = f"{sum(good)} of {len(good)} runs" + (f"; against: {', '.join(against)}" if against else "")
    return Finding(float(np.mean(good)), all(good), detail)


@PAPER.claim(
    "beyond-sam-trap", "beyond", "SAM with a ρ that reaches across the saddle at 0 never leaves the saddle.",
    "distance from 0 < 3α",
)  # fmt: skip
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
