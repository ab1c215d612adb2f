"""Section 3: where gradient descent of the diagonal network ends, in the plane of its weights and against the rate."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steppe import figures
from steppe.experiments import Finding
from steppe.papers.conflicting_biases.diagonal_runs import DiagonalSweep, Example, converged, even, example_of
from steppe.papers.conflicting_biases.paper import PAPER
from steppe.papers.conflicting_biases.theory.kkt import kkt_points
from steppe.papers.conflicting_biases.theory.manifold import arc
from steppe.papers.conflicting_biases.theory.risks import risk

# Four rates below η_c and eight above, as in figure 16; in units of η₁.
PLANES = DiagonalSweep((0.3, 0.55, 0.8, 0.95, 1.05, 1.15, 1.25, 1.37, 1.5, 1.65, 1.8, 2.0), iterates=800)
SMOKE, FULL = DiagonalSweep(even(0.2, 2.6, 121)), DiagonalSweep(even(0.2, 2.6, 961))

# Figure 4: four of the trajectories of figure 16, and the risk of figure 15.

_FIGURE_4 = {"b · flow-aligned": 0.55, "c · past $\\eta_c$": 1.15, "e · near the best": 1.37, "f · too large": 1.8}


@PAPER.plot(
    "fig4", "the diagonal network: trajectories and U-shaped risk", figures.diagonal,
    runs={"smoke": (PLANES, SMOKE), "paper": (PLANES, FULL)},
)  # fmt: skip
def fig4(entries: Sequence[Any]) -> dict[str, Any]:
    plane_runs, sweep = entries
    rates = list(plane_runs.spec["rates"])
    planes = [plane(plane_runs, rates.index(rate), f"{name}: η = {rate:g} η₁") for name, rate in _FIGURE_4.items()]
    panel = _risk_panel(sweep) | {"title": "d · the risk is U-shaped in η"}
    panel["places"] = [{"at": rate, "label": name[0], "low": True} for name, rate in _FIGURE_4.items()]
    title = "Fig. 4 · a diagonal network trained on one example"
    return {"title": title, "planes": planes, "risk": panel} | shared_plane(plane_runs)


def _risk_panel(entry: Any) -> dict[str, Any]:
    example, ends = example_of(entry), converged(entry)
    line = np.linspace(entry.spec["rates"][0], example.limit, 300)
    risks, span = example.risks(), [entry.spec["rates"][0], example.limit]
    levels = (
        ("norm", "least norm", "green"),
        ("sharpness", "least sharpness", "blue"),
        ("optimal", "best on M", "pink"),
    )
    series = [
        figures.series(ends["rate"], ends["risk"], "points", "red", "GD"),
        figures.series(line, risk(example.at_sharpness(line)), "dashed", "ink", "on M at S = 2/η"),
        *(figures.series(span, [risks[name]] * 2, "dotted", colour, label) for name, label, colour in levels),
    ]
    # Room for the legend above the curves.
    limits = {"y": [risks["optimal"] - 0.06, risks["sharpness"] + 0.24]}
    return {"x": "η/η₁", "y": "risk", "series": series, "legend": "upper left", "legend_columns": 2, "limits": limits}


def shared_plane(entry: Any) -> dict[str, Any]:
    """What all planes share: sharpness on a grid, solutions, flow."""
    example = example_of(entry)
    solutions = arc(example.x, example.y, 121)
    w1 = np.linspace(0, 1.45 * float(solutions[:, 0].max()), 61)
    w2 = np.linspace(0, 1.12 * float(solutions[:, 1].max()), 61)
    grid = np.stack(np.meshgrid(w1, w2), axis=-1)
    return {
        "w1": w1.round(6).tolist(),
        "w2": w2.round(6).tolist(),
        "sharpness": example.manifold().operator_norm(grid).round(5).tolist(),
        "solutions": solutions.round(6).tolist(),
        "flow": example.flow(80).round(6).tolist(),
    }


def plane(entry: Any, k: int, title: str) -> dict[str, Any]:
    example = example_of(entry)
    lr = entry.spec["rates"][k] * example.unit
    path = entry.params["path"][k]
    steps = int(entry.curves["steps"][k])
    # By symmetry every step can be shown in the positive quadrant; after its end a run does not move.
    shown = np.abs(path[: steps + 1])
    return {
        "title": title,
        "limit": 2 / lr,
        "path": shown.round(6).tolist(),
        "end": np.abs(entry.params["w"][k]).round(6).tolist(),
        "points": [{"w": p.w.round(6).tolist(), "label": "KKT"} for p in kkt_points(example.x, example.y, lr)],
    }


@PAPER.claim(
    "fig4-risks", "section 3", "The least norm has less risk than the least sharpness, and neither is the best of M.",
    "R(M_ℓ1)/R(M_S) < 1",
)  # fmt: skip
def order_of_risks() -> Finding:
    """R(M_ℓ1)/R(M_S), below 1, with R(M_G) below both."""
    risks = Example().risks()
    holds = risks["optimal"] < risks["norm"] < risks["sharpness"]
    return Finding(risks["norm"] / risks["sharpness"], holds, ", ".join(f"{k} {v:.4f}" for k, v in risks.items()))


@PAPER.claim(
    "fig4-u-shape", "Figure 4d", "The risk is U-shaped in η, least where 2/η is the sharpness of M_G.",
    "ratio of these two rates within 5% of 1", needs=(fig4,),
)  # fmt: skip
def u_shape(runs: Sequence[Any]) -> Finding:
    """The rate of least risk over the one at which 2/η is the sharpness of M_G; the risk there over the optimum."""
    entry = runs[1]
    example, c = example_of(entry), converged(entry)
    best = int(np.argmin(c["risk"]))
    ratio = float(c["rate"][best] / example.best_rate())
    excess = float(c["risk"][best] / example.risks()["optimal"] - 1)
    ends = min(float(c["risk"][0]), float(c["risk"][-1])) / float(c["risk"][best])
    holds = abs(ratio - 1) < 0.05 and excess < 0.01 and ends > 1.1
    return Finding(ratio, holds, f"risk {excess:.2%} above the optimum; both ends at least {ends:.2f} times the least")


# Figure 15: final sharpness, norm and risk against the rate.


@PAPER.plot(
    "fig15", "final sharpness, norm and risk against the rate", figures.panels,
    runs={"smoke": (SMOKE,), "paper": (FULL,)},
)  # fmt: skip
def fig15(entries: Sequence[Any]) -> dict[str, Any]:
    (entry,) = entries
    example, ends = example_of(entry), converged(entry)
    line = np.linspace(entry.spec["rates"][0], example.limit, 300)
    predicted = np.sum(example.at_sharpness(line) ** 2, axis=1)
    places = [{"at": example.critical(), "label": "$\\eta_c$"}]
    panels: list[dict[str, Any]] = [
        {"x": "η/η₁", "y": "final sharpness", "places": places, "title": "a · sharpness", "series": [
            figures.series(ends["rate"], ends["sharpness"], "points", "blue", "GD"),
            figures.series(line, 2 / line / example.unit, "dashed", "ink", "2/η"),
        ], "limits": {"y": [0, 1.25 * float(np.max(ends["sharpness"]))]}},
        {"x": "η/η₁", "y": "final norm ‖w²‖₁", "places": places, "title": "b · norm", "series": [
            figures.series(ends["rate"], ends["norm"], "points", "green", "GD"),
            figures.series(line, predicted, "dashed", "ink", "on M at S = 2/η"),
        ]},
        _risk_panel(entry) | {"places": places, "title": "c · risk"},
    ]  # fmt: skip
    diverged = (entry.curves["outcome"] != 0) & (entry.curves["rate"] > 1)
    if diverged.any():
        first = float(ends["rate"].max())
        for panel in panels:
            panel["spans"] = [{"from": first, "to": example.limit, "label": "diverges", "colour": "red"}]
    return {"title": "Fig. 15 · where gradient descent ends, against its rate", "panels": panels}


@PAPER.claim(
    "fig15-flow-aligned", "Figure 15", "Below η_c the final sharpness and norm do not depend on η.",
    "relative spread < 2%", needs=(fig15,),
)  # fmt: skip
def flow_aligned(runs: Sequence[Any]) -> Finding:
    """The spread of sharpness and norm of the ends below 0.95 η_c, relative to their mean."""
    (entry,) = runs
    c = converged(entry, below=0.95 * example_of(entry).critical())
    spread = max(float(np.ptp(c[name]) / c[name].mean()) for name in ("sharpness", "norm"))
    return Finding(spread, spread < 0.02, f"{len(c['rate'])} rates")


@PAPER.claim(
    "fig15-critical", "Figure 15", "The final sharpness begins to fall at η_c = 2/s_GF.",
    "first such rate over η_c within 3% of 1", needs=(fig15,),
)  # fmt: skip
def critical(runs: Sequence[Any]) -> Finding:
    """The first rate whose end is 1% flatter than the flow's, over η_c = 2/s_GF."""
    (entry,) = runs
    c, example = converged(entry), example_of(entry)
    flat = c["sharpness"] < 0.99 * c["sharpness"][0]
    ratio = float(c["rate"][np.argmax(flat)] / example.critical())
    return Finding(ratio, abs(ratio - 1) < 0.03, f"η_c = {example.critical():.4f} η₁")


@PAPER.claim(
    "fig15-tracks", "Figure 15a", "Above η_c the final sharpness follows 2/η from below.",
    "S η/2: median > 0.95, all ≤ 1", needs=(fig15,),
)  # fmt: skip
def tracks(runs: Sequence[Any]) -> Finding:
    """The median of S/(2/η) over the rates above η_c that converge; none above 1."""
    (entry,) = runs
    example = example_of(entry)
    c = converged(entry, above=1.02 * example.critical())
    ratio = c["sharpness"] * c["rate"] * example.unit / 2
    middle = float(np.median(ratio))
    holds = middle > 0.95 and float(ratio.max()) <= 1
    return Finding(middle, holds, f"from {ratio.min():.3f} to {ratio.max():.3f}, {len(ratio)} rates")


@PAPER.claim(
    "fig15-norm", "Figure 15b", "Above η_c the norm grows as predicted, like that of the point of M with S = 2/η.",
    "median relative distance < 5%", needs=(fig15,),
)  # fmt: skip
def norm_predicted(runs: Sequence[Any]) -> Finding:
    """The median relative distance of ‖w²‖₁ to its value on M at S = 2/η, above η_c; and the norm grows."""
    (entry,) = runs
    example = example_of(entry)
    c = converged(entry, above=1.02 * example.critical())
    predicted = np.sum(example.at_sharpness(c["rate"]) ** 2, axis=1)
    away = float(np.median(np.abs(c["norm"] / predicted - 1)))
    grows = float(np.corrcoef(c["rate"], c["norm"])[0, 1])
    return Finding(away, away < 0.05 and grows > 0.9, f"correlation of rate and norm {grows:.3f}")


@PAPER.claim(
    "figH13-divergence", "appendix H.13", "Gradient descent diverges while some points of M are still stable.",
    "largest rate that converges over the limit of M < 1", needs=(fig15,),
)  # fmt: skip
def diverges_early(runs: Sequence[Any]) -> Finding:
    """The last rate that converges over the limit of M."""
    (entry,) = runs
    example = example_of(entry)
    last = float(converged(entry)["rate"].max())
    return Finding(last / example.limit, last < example.limit, f"{last:.4g} η₁ of {example.limit:.4g} η₁")


# Figure 16: twelve trajectories.

_LETTERS = "abcdefghijkl"


@PAPER.plot(
    "fig16", "twelve trajectories, flow-aligned to the edge of divergence", figures.planes,
    runs={"smoke": (PLANES,), "paper": (PLANES,)},
)  # fmt: skip
def fig16(entries: Sequence[Any]) -> dict[str, Any]:
    (entry,) = entries
    planes = [plane(entry, k, f"{_LETTERS[k]} · η = {rate:g} η₁") for k, rate in enumerate(entry.spec["rates"])]
    title = "Fig. 16 · gradient descent in the plane of its two weights"
    return {"title": title, "columns": 4} | shared_plane(entry) | {"planes": planes}


@PAPER.claim("fig16-kkt", "Figure 16", "Training often ends close to a KKT point.", "distance < 0.1", needs=(fig16,))
def near_kkt(runs: Sequence[Any]) -> Finding:
    """The largest distance of an end to the KKT point with S = 2/η, for the rates at which such a point exists."""
    (entry,) = runs
    example, away, missing = example_of(entry), [], 0
    for k, rate in enumerate(entry.spec["rates"]):
        if entry.curves["outcome"][k] != 0 or rate < example.critical():
            continue
        active = [p.w for p in kkt_points(example.x, example.y, rate * example.unit) if p.active]
        missing += not active
        away += [min(float(np.linalg.norm(np.abs(entry.params["w"][k]) - w)) for w in active)] if active else []
    detail = f"{len(away)} ends; {missing} rates between η_c and that of M_G have no such point"
    return Finding(max(away), max(away) < 0.1, detail)
