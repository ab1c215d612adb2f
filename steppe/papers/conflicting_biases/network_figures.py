"""What the figures on networks share: their runs at each scale, grids of panels, and the names of stand-ins.

At smoke and laptop scale the runs are not those of the paper: smaller networks, fewer examples, other data. Titles of
figures and details of claims then name the network and the data that were used.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from steppe import figures
from steppe.experiments import Experiment, Figure, Scale, Shown
from steppe.papers.conflicting_biases.network_ends import Ends, at_goal, at_last_goal, panel
from steppe.papers.conflicting_biases.network_runs import NetworkSweep
from steppe.papers.conflicting_biases.network_scales import served_by, smoke_spec, spec
from steppe.papers.conflicting_biases.paper import PAPER
from steppe.papers.conflicting_biases.table_1 import Row, Setting, shown_in, stand_ins

Numbers = Callable[[Sequence[Any], Sequence[Row]], dict[str, Any]]
Changed = Callable[[NetworkSweep], Experiment]

# At smoke scale a figure shows these instead of its rows: few sweeps, each in several figures.
_TANH = smoke_spec(Setting("fcn", "mnist", "half_mse", activation="tanh"))
_RELU = smoke_spec(Setting("fcn", "mnist", "half_mse"))
_CROSS_ENTROPY = smoke_spec(Setting("fcn", "mnist", "cross_entropy"))


def figure(
    id: str, title: str, panels: Sequence[str], numbers: Numbers, *,
    runs_of: Changed | Mapping[Scale, Changed] | None = None, scales: Sequence[Scale] = ("smoke", "laptop", "paper"),
) -> Figure:  # fmt: skip
    """Declare a figure of the rows that the paper shows in these panels ("3a" for example).

    `runs_of` changes the sweeps of the rows, at all scales or at those that it names.
    """
    rows = list(dict.fromkeys(shown_in(name) for name in panels))
    changes = runs_of if isinstance(runs_of, Mapping) else dict.fromkeys(scales, runs_of)
    runs: dict[Scale, Sequence[Experiment]] = {}
    for scale in scales:
        swept = dict.fromkeys(_stand_in(row) if scale == "smoke" else spec(row, scale) for row in rows)
        change = changes.get(scale)
        runs[scale] = tuple(change(one) if change else one for one in swept)
    show = Shown(lambda entries: numbers(entries, rows), figures.rates)
    return PAPER.figure(id, title, runs=runs, show=show)


def _stand_in(row: Row) -> NetworkSweep:
    if row.setting.loss == "cross_entropy":
        return _CROSS_ENTROPY
    return _TANH if row.setting.activation == "tanh" else _RELU


def ends_grid(title: str, *quantities: str) -> Numbers:
    """A column for each row, a row for each quantity of its ends at its goal."""
    return grid(title, quantities, panel)


def grid(title: str, quantities: Sequence[str], one: Callable[..., dict[str, Any]]) -> Numbers:
    """A column for each row of table 1, a row for each quantity: the panel `one(ends, quantity, titled=...)`."""

    def numbers(entries: Sequence[Any], rows: Sequence[Row]) -> dict[str, Any]:
        ends = [one for entry in entries for one in ends_of(entry, rows)]
        panels = [[one(e, quantity, titled=k == 0) for e in ends] for k, quantity in enumerate(quantities)]
        return {"title": honest(title, ends), "grid": panels}

    return numbers


def ends_of(entry: Any, rows: Sequence[Row]) -> list[Ends]:
    """The ends of a sweep at the goal of each of the rows that it stands for; a stand-in is shown at its last goal."""
    goals = [row.goal for row, _ in served_by(entry) if row in rows]
    return [at_goal(entry, goal) for goal in goals] or [at_last_goal(entry)]


def honest(title: str, ends: Iterable[Ends]) -> str:
    """The title of what the paper shows; if something else is shown, it says so and names that."""
    others = stand_ins(one.setting for one in ends)
    return f"Stand-in for {title}\n{others}" if others else title
