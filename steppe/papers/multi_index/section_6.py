"""Figures 2, 3 and 4: numbers behind the scatter of flatness against population loss."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from steppe.experiments._paper import Figure
from steppe.papers.multi_index.reading import NAMES, Group, groups
from steppe.papers.multi_index.specs import FIG2, FIG2_LOUD, FIG3, FIG3_LOUD, FIG4

_COLUMNS = 3
# A loss of 0 is drawn as rounding.
_FLOOR = 1e-16


def scatter(title: str) -> Callable[[Sequence[Any]], dict[str, Any]]:
    def numbers(entries: Sequence[Any]) -> dict[str, Any]:
        panels = [_panel(group) for group in groups(entries)]
        return {"title": title, "rows": [panels[k : k + _COLUMNS] for k in range(0, len(panels), _COLUMNS)]}

    return numbers


def _panel(group: Group) -> dict[str, Any]:
    import numpy as np

    spec, found = group.spec, group.found
    share = found.mean(axis=0)
    kept = share > 0.5
    loss = np.maximum(group.loss, _FLOOR)
    missing = np.flatnonzero(~kept)
    link = {"sum": "", "linear": "linear link, ", "quadratic-form": "y = relu(xᵀAx), "}[spec["link"]]
    noise = f", noise {spec['noise']:g}" if spec["noise"] else ""
    note = ""
    if len(missing):
        note = f"no interpolator for ν ≥ {group.columns['nu'][0][missing[0]]:.2g}"
    return {
        "title": f"{link}{NAMES[spec['activation']]}{noise}",
        "nu": group.columns["nu"][0][kept].tolist(),
        "flatness": _spread(group.columns["flatness"], found, kept),
        "loss": _spread(loss, found, kept),
        "power": group.power,
        "note": note,
    }


def _spread(values: Any, found: Any, kept: Any) -> dict[str, list[float]]:
    """Median and middle 80% over the seeds with an interpolator, at the ν where more than half have one."""
    import numpy as np

    columns = [values[found[:, k], k] for k in np.flatnonzero(kept)]
    return {
        name: [float(np.quantile(c, q)) for c in columns] for name, q in (("low", 0.1), ("median", 0.5), ("high", 0.9))
    }


def draw(numbers: Mapping[str, Any]) -> Any:
    from steppe.figures._flatness import flatness_loss

    return flatness_loss(numbers)


# Seconds: of one core that nothing else uses.
FIGURES = (
    Figure("fig2", "single-index models: flatness against population loss", FIG2,
           scatter("Fig. 2 · single-index models, without and with noise"), draw, {"smoke": 2, "paper": 360}),
    Figure("fig2-loud", "… with inner weights on one side and noise as strong as the signal", FIG2_LOUD,
           scatter("Fig. 2 · single-index models, one-sided inner weights, strong noise"), draw,
           {"smoke": 1, "paper": 180}),
    Figure("fig3", "sums of five single-index models", FIG3,
           scatter("Fig. 3 · sums of five single-index models, without and with noise"), draw,
           {"smoke": 2, "paper": 360}),
    Figure("fig3-loud", "… with inner weights on one side and noise as strong as the signal", FIG3_LOUD,
           scatter("Fig. 3 · sums of five, one-sided inner weights, strong noise"), draw,
           {"smoke": 1, "paper": 180}),
    Figure("fig4", "linear link with ReLU and with linear activation; quadratic form", FIG4,
           scatter("Fig. 4 · special cases"), draw, {"smoke": 1, "paper": 180}),
)  # fmt: skip
