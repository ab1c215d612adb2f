"""A finished sweep read back: its ends at one goal, its critical rate, its paths."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LOSSES = {"half_mse": "MSE", "cross_entropy": "CE"}


@dataclass(frozen=True)
class Ends:
    """What the runs that reached a goal came to, in the order of their rates; `column` by its name in the table."""

    entry: Any
    goal: float

    @property
    def table(self) -> dict[str, NDArray[Any]]:
        curves = self.entry.curves
        keep = np.isclose(curves["goal"], self.goal, rtol=1e-9, atol=0) & (curves["outcome"] == 0)
        return {name: column[keep] for name, column in curves.items()}

    @property
    def flow(self) -> dict[str, float]:
        """The same at the flow's end; what is not known is missing."""
        columns = self.entry.result["flow"]
        k = int(np.argmin(np.abs(np.array(columns["goal"]) / self.goal - 1)))
        return {name: column[k] for name, column in columns.items() if column[k] is not None}

    @property
    def critical(self) -> float:
        """η_c = 2/s_GF."""
        return self.flow["critical"]

    @property
    def title(self) -> str:
        """In two lines: network and data; loss, start and goal."""
        s = self.entry.spec["setting"]
        size = f" {s['width']}×{s['depth']}" if s["architecture"] == "fcn" else ""
        kind = {"standard": "", "kernel": " kernel", "mup": " μP"}[s["parameterisation"]]
        start = "" if s["scale"] == 1 else f", start ×{s['scale']:g}"
        n = f"-{s['n']}" if s["n"] else ""
        model = f"{s['architecture']}-{s['activation']}{size}{kind}"
        return f"{model}, {s['data']}{n}\n{LOSSES[s['loss']]}, seed {s['seed']}{start}, loss {self.goal:g}"

    def path(self, k: int) -> dict[str, NDArray[Any]]:
        """What the run at the k-th of all rates recorded on the way."""
        params, prefix = self.entry.params, f"path/{k}/"
        return {name.removeprefix(prefix): a for name, a in params.items() if name.startswith(prefix)}

    @property
    def rates(self) -> list[float]:
        """All rates, those that did not reach the goal too."""
        return self.entry.result["runs"]["lr"]


def last(entry: Any) -> Ends:
    """At the last goal."""
    return Ends(entry, entry.spec["goals"][-1])


def every_goal(entry: Any) -> list[Ends]:
    return [Ends(entry, goal) for goal in entry.spec["goals"]]
