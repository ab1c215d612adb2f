"""Figures 4, 15 and 16: gradient descent of the diagonal network in its plane, and its end against the rate."""

from collections.abc import Sequence
from typing import Any

from steppe.experiments._paper import Figure
from steppe.papers.conflicting_biases.diagonal_sweep import Sweep, even
from steppe.papers.conflicting_biases.drawn import drawn
from steppe.papers.conflicting_biases.finished import example_of, settled

# Four below η_c and eight above, as in figure 16; in units of η₁.
PLANES = Sweep((0.3, 0.55, 0.8, 0.95, 1.05, 1.15, 1.25, 1.37, 1.5, 1.65, 1.8, 2.0), iterates=800)
RATES = {"smoke": Sweep(even(0.2, 2.6, 121)), "paper": Sweep(even(0.2, 2.6, 961))}
FIGURE_4 = (0.55, 1.15, 1.37, 1.8)
_LETTERS = "abcdefghijkl"


def numbers_planes(entries: Sequence[Any]) -> dict[str, Any]:
    (entry,) = entries
    planes = [plane(entry, k, f"{_LETTERS[k]} · η = {rate:g} η₁") for k, rate in enumerate(entry.spec["rates"])]
    return {"title": "Fig. 16 · gradient descent in the plane of its two weights",
    "columns": 4} | shared_plane(entry) | {
        "planes": planes
    }  # fmt: skip


def numbers_figure_4(entries: Sequence[Any]) -> dict[str, Any]:
    plane_runs, sweep = entries
    rates = list(plane_runs.spec["rates"])
    names = ("b · flow-aligned", "c · past $\\eta_c$", "e · near the best", "f · too large")
    planes = [
        plane(plane_runs, rates.index(rate), f"{name}: η = {rate:g} η₁")
        for name, rate in zip(names, FIGURE_4, strict=True)
    ]
    panel = _risk_panel(sweep) | {"title": "d · the risk is U-shaped in η"}
    panel["places"] = [{"at": rate, "label": name[0], "low": True} for name, rate in zip(names, FIGURE_4, strict=True)]
    title = "Fig. 4 · a diagonal network trained on one example"
    return {"title": title, "planes": planes, "risk": panel} | shared_plane(plane_runs)


def numbers_figure_15(entries: Sequence[Any]) -> dict[str, Any]:
    import numpy as np

    (entry,) = entries
    example, ends = example_of(entry), settled(entry)
    line = np.linspace(entry.spec["rates"][0], example.limit, 300)
    predicted = example.at_sharpness(line)
    rates = ends["rate"].tolist()
    places = [{"at": example.critical(), "label": "$\\eta_c$"}]
    panels: list[dict[str, Any]] = [
        {"x": "η/η₁", "y": "sharpness of the end", "places": places, "title": "a · sharpness", "series": [
            {"x": rates, "y": ends["sharpness"].tolist(), "kind": "points", "colour": "blue", "label": "GD"},
            {"x": line.tolist(), "y": (2 / line / example.unit).tolist(), "kind": "dashed", "colour": "ink",
             "label": "2/η"},
        ], "limits": {"y": [0, 1.25 * float(np.max(ends["sharpness"]))]}},
        {"x": "η/η₁", "y": "‖w²‖₁ of the end", "places": places, "title": "b · norm", "series": [
            {"x": rates, "y": ends["norm"].tolist(), "kind": "points", "colour": "green", "label": "GD"},
            {"x": line.tolist(), "y": np.sum(predicted**2, axis=1).tolist(), "kind": "dashed", "colour": "ink",
             "label": "on M at S = 2/η"},
        ]},
        _risk_panel(entry) | {"places": places, "title": "c · risk"},
    ]  # fmt: skip
    diverged = (entry.curves["outcome"] != 0) & (entry.curves["rate"] > 1)
    if diverged.any():
        first = float(ends["rate"].max())
        for panel in panels:
            stretch = {"from": first, "to": example.limit, "label": "diverges", "colour": "red"}
            panel["spans"] = [stretch]
    return {"title": "Fig. 15 · where gradient descent ends, against its rate", "panels": panels}


def _risk_panel(entry: Any) -> dict[str, Any]:
    import numpy as np

    from steppe.papers.conflicting_biases.theory import risk

    example, ends = example_of(entry), settled(entry)
    line = np.linspace(entry.spec["rates"][0], example.limit, 300)
    risks, span = example.risks(), [entry.spec["rates"][0], example.limit]
    levels = (("norm", "least norm"), ("sharpness", "least sharpness"), ("optimal", "best on M"))
    series = [
        {"x": ends["rate"].tolist(), "y": ends["risk"].tolist(), "kind": "points", "colour": "red", "label": "GD"},
        {"x": line.tolist(), "y": np.asarray(risk(example.at_sharpness(line))).tolist(), "kind": "dashed",
         "colour": "ink", "label": "on M at S = 2/η"},
        *({"x": span, "y": [risks[name]] * 2, "kind": "dotted", "colour": colour, "label": label}
          for (name, label), colour in zip(levels, ("green", "blue", "pink"), strict=True)),
    ]  # fmt: skip
    # Room for the legend above the curves.
    limits = {"y": [risks["optimal"] - 0.06, risks["sharpness"] + 0.24]}
    return {"x": "η/η₁", "y": "risk", "series": series, "legend": "upper left", "legend_columns": 2, "limits": limits}


def shared_plane(entry: Any) -> dict[str, Any]:
    """The plane itself: sharpness on a grid, solutions, flow."""
    import numpy as np

    from steppe.papers.conflicting_biases.theory import arc

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
    import numpy as np

    from steppe.papers.conflicting_biases.theory import kkt_points

    example = example_of(entry)
    lr = entry.spec["rates"][k] * example.unit
    path = entry.params["path"][k]
    steps = int(entry.curves["steps"][k])
    # By symmetry every step can be shown in the positive quadrant; past its end a run stands still.
    shown = np.abs(path[: steps + 1])
    return {
        "title": title,
        "limit": 2 / lr,
        "path": shown.round(6).tolist(),
        "end": np.abs(entry.params["w"][k]).round(6).tolist(),
        "points": [{"w": p.w.round(6).tolist(), "label": "KKT"} for p in kkt_points(example.x, example.y, lr)],
    }


FIGURES = (
    Figure("fig4", "the diagonal network: trajectories and U-shaped risk",
           {"smoke": (PLANES, RATES["smoke"]), "paper": (PLANES, RATES["paper"])},
           numbers_figure_4, drawn("diagonal"), {"smoke": 3, "paper": 5}),
    Figure("fig15", "sharpness, norm and risk of the end against the rate",
           {"smoke": (RATES["smoke"],), "paper": (RATES["paper"],)},
           numbers_figure_15, drawn("panels"), {"smoke": 2, "paper": 4}),
    Figure("fig16", "twelve trajectories, flow-aligned to the edge of divergence",
           {"smoke": (PLANES,), "paper": (PLANES,)},
           numbers_planes, drawn("planes"), {"smoke": 2, "paper": 2}),
)  # fmt: skip
