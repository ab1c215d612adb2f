"""Figures beyond the paper: divergence, other algorithms, three weights, one weight."""

from collections.abc import Sequence
from typing import Any

from steppe.experiments._paper import Figure
from steppe.papers.conflicting_biases.bifurcation import Bifurcation
from steppe.papers.conflicting_biases.diagonal_figures import RATES, plane, shared_plane
from steppe.papers.conflicting_biases.diagonal_sweep import OUTCOMES, Algorithm, Sweep, even
from steppe.papers.conflicting_biases.divergence import Divergence
from steppe.papers.conflicting_biases.drawn import drawn
from steppe.papers.conflicting_biases.factors import Factors
from steppe.papers.conflicting_biases.finished import example_of, settled
from steppe.papers.conflicting_biases.theory.kkt import EDGE, ESCAPE, FOUR, SIGNS, two_cycle

_THREE = ("blue", "orange", "green")
MOMENTA = (0.0, 0.2, 0.5)
SLOW = 0.3  # the rate (in η₁) of the algorithms that are watched over many steps
RADIUS = 0.04  # of SAM: below α, since one that reaches across the origin never leaves it


def _edges(rates: tuple[float, ...]) -> tuple[Sweep, ...]:
    return tuple(Sweep(rates, algorithm="heavy-ball" if beta else "gd", strength=beta) for beta in MOMENTA)


def _long(steps: int) -> tuple[Sweep, ...]:
    def watched(algorithm: Algorithm, strength: float) -> Sweep:
        return Sweep((SLOW,), algorithm=algorithm, strength=strength, steps=steps, iterates=60, per_decade=12)

    return watched("gd", 0.0), watched("heavy-ball", 0.5), watched("sam", RADIUS), watched("label-noise", 0.3)


def numbers_divergence(entries: Sequence[Any]) -> dict[str, Any]:
    import numpy as np

    series: list[dict[str, Any]] = []
    for entry, colour in zip(entries, _THREE, strict=False):
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


def numbers_edges(entries: Sequence[Any]) -> dict[str, Any]:
    import numpy as np

    edges, watched = entries[: len(MOMENTA)], entries[len(MOMENTA) :]
    example = example_of(entries[0])
    line = np.linspace(0.9, 2.0, 100)
    first: list[dict[str, Any]] = []
    for entry, beta, colour in zip(edges, MOMENTA, _THREE, strict=True):
        ends = settled(entry)
        first += [
            {"x": ends["rate"].tolist(), "y": ends["sharpness"].tolist(), "kind": "points", "colour": colour,
             "label": f"β = {beta:g}"},
            {"x": line.tolist(), "y": (2 * (1 + beta) / line / example.unit).tolist(), "kind": "dashed",
             "colour": colour},
        ]  # fmt: skip
    second: list[dict[str, Any]] = []
    for entry, name, colour in zip(watched, ("GD", "heavy ball", "SAM", "label noise"), (*_THREE, "red"), strict=True):
        moments = np.asarray(entry.result["moments"])
        # On a logarithmic axis of steps there is no place for the start.
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
             "title": f"SAM and noise go on to the flattest (η = {SLOW:g} η₁)"},
        ],
    }  # fmt: skip


def _factors(steps: int) -> tuple[Factors, ...]:
    return (
        Factors("gd", 0.02, steps=steps),
        Factors("label-noise", 0.05, 1.0, steps=2 * steps),
        Factors("1-sam", 0.02, 0.1, steps=2 * steps),
    )


def numbers_factors(entries: Sequence[Any]) -> dict[str, Any]:
    import numpy as np

    least = entries[0].result["least"]
    panels: list[dict[str, Any]] = []
    for name, label, scale in (
        ("trace", "tr ∇²L over the least", least),
        ("distance", "max |u ⊙ v − weighted ℓ1 solution|", 1.0),
    ):
        series = []
        for entry, colour in zip(entries, _THREE, strict=True):
            # On a logarithmic axis of steps there is no place for the start.
            steps, values = entry.curves["step"][1:], entry.curves[name][1:] / scale
            title = {"gd": "GD", "label-noise": "label noise", "1-sam": "1-SAM"}[entry.spec["algorithm"]]
            series.append({"x": steps.tolist(), "y": values.tolist(), "kind": "line", "colour": colour, "label": title})
        if name == "trace":
            ends = [1, int(np.max(steps))]
            series.append({"x": ends, "y": [1, 1], "kind": "dotted", "colour": "ink", "label": "2 Σ q|β|, least"})
        panels.append({"x": "steps", "y": label, "log": "xy", "series": series})
    size = f"{entries[0].spec['n']} examples, {entries[0].spec['d']} inputs"
    return {"title": f"Beyond · ⟨u ⊙ v, x⟩ on {size}: flattest is sparsest", "panels": panels}


def numbers_algorithms(entries: Sequence[Any]) -> dict[str, Any]:
    names = ("gradient descent", "heavy ball, β = 0.5", f"SAM, ρ = {RADIUS:g}", "label noise, σ = 0.3")
    planes = [plane(entry, 0, name) for entry, name in zip(entries, names, strict=True)]
    title = f"Beyond · four algorithms from one start, η = {SLOW:g} η₁"
    return {"title": title, "columns": 4, "planes": planes} | shared_plane(entries[0])


def numbers_simplex(entries: Sequence[Any]) -> dict[str, Any]:
    import numpy as np

    from steppe.papers.conflicting_biases.theory import least_risk, risk

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


def numbers_bifurcation(entries: Sequence[Any]) -> dict[str, Any]:
    import numpy as np

    pass  # MERGED

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


def _triangle(count: int, steps: int) -> tuple[Sweep]:
    return (Sweep(even(0.3, 2.0, count), x=(1.0, 0.6, 0.3), y=0.9, alpha=0.1, steps=steps),)


FIGURES = (
    Figure("divergence", "the rate at which gradient descent diverges against the theoretical limit",
           {"smoke": (Divergence(limits=(1.2, 1.5, 2.0, 3.3), count=126, steps=20_000),),
            "paper": (Divergence(), Divergence(alpha=0.3))},
           numbers_divergence, drawn("panels"), {"smoke": 3, "paper": 20}),
    Figure("edges", "momentum, SAM and label noise against gradient descent",
           {"smoke": (*_edges(RATES["smoke"].rates), *_long(12_000)),
            "paper": (*_edges(RATES["paper"].rates), *_long(300_000))},
           numbers_edges, drawn("panels"), {"smoke": 6, "paper": 20}),
    Figure("algorithms", "four algorithms in the plane",
           {"smoke": _long(12_000), "paper": _long(300_000)},
           numbers_algorithms, drawn("planes"), {"smoke": 4, "paper": 10}),
    Figure("factors", "the form u ⊙ v on several examples: label noise and 1-SAM find the weighted ℓ1 solution",
           {"smoke": _factors(80_000), "paper": _factors(500_000)},
           numbers_factors, drawn("panels"), {"smoke": 6, "paper": 30}),
    Figure("triangle", "three weights: the solutions as a triangle",
           {"smoke": _triangle(35, 30_000),
            "paper": _triangle(171, 100_000)},
           numbers_simplex, drawn("simplex"), {"smoke": 2, "paper": 4}),
    Figure("bifurcation", "one weight past its edge of stability: period doubling to chaos",
           {"smoke": (Bifurcation(count=241, burn=1500, keep=64),), "paper": (Bifurcation(),)},
           numbers_bifurcation, drawn("bifurcation"), {"smoke": 1, "paper": 2}),
)  # fmt: skip
