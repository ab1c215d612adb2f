"""What the figures and claims on networks share: their runs at each scale, grids of panels, and the names of stand-ins.

At smoke and laptop scale the runs are not those of the paper: smaller networks, fewer examples, other data. Titles of
figures and details of claims then name the network and the data that were used.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from steppe import figures
from steppe.experiments import Figure, Finding, Scale, Shown
from steppe.papers.conflicting_biases.network_ends import Ends, at_last_goal, panel
from steppe.papers.conflicting_biases.network_runs import NetworkSweep
from steppe.papers.conflicting_biases.network_scales import smoke_spec, spec
from steppe.papers.conflicting_biases.paper import PAPER
from steppe.papers.conflicting_biases.table_1 import Row, Setting, shown_in, stand_ins

Numbers = Callable[[Sequence[Any]], dict[str, Any]]
Check = Callable[[list[Ends]], Finding]

NORMS = ("l1", "l2", "nuclear")

# At smoke scale a figure shows these instead of its rows: few sweeps, each in several figures.
_TANH = smoke_spec(Setting("fcn", "mnist", "half_mse", activation="tanh"), all_sharpness=True)
_RELU = smoke_spec(Setting("fcn", "mnist", "half_mse"))
_CROSS_ENTROPY = smoke_spec(Setting("fcn", "mnist", "cross_entropy"))


def figure(id: str, title: str, panels: Sequence[str], numbers: Numbers, *, all_sharpness: bool = False) -> Figure:
    """Declare a figure of the rows that the paper shows in these panels ("3a" for example)."""
    rows = list(dict.fromkeys(shown_in(name) for name in panels))
    runs: dict[Scale, Sequence[NetworkSweep]] = {
        "smoke": tuple(dict.fromkeys(_TANH if all_sharpness else _stand_in(row) for row in rows)),
        "laptop": tuple(dict.fromkeys(spec(row, "laptop", all_sharpness=all_sharpness) for row in rows)),
        "paper": tuple(spec(row, "paper", all_sharpness=all_sharpness) for row in rows),
    }
    return PAPER.figure(id, title, runs=runs, show=Shown(numbers, figures.rates))


def _stand_in(row: Row) -> NetworkSweep:
    if row.setting.loss == "cross_entropy":
        return _CROSS_ENTROPY
    return _TANH if row.setting.activation == "tanh" else _RELU


def ends_grid(title: str, *quantities: str) -> Numbers:
    """A column for each sweep, a row for each quantity of its ends at the last goal."""
    return grid(title, quantities, panel)


def grid(title: str, quantities: Sequence[str], one: Callable[..., dict[str, Any]]) -> Numbers:
    """A column for each sweep, a row for each quantity: the panel `one(ends, quantity, titled=...)`."""

    def numbers(entries: Sequence[Any]) -> dict[str, Any]:
        ends = [at_last_goal(entry) for entry in entries]
        rows = [[one(e, quantity, titled=k == 0) for e in ends] for k, quantity in enumerate(quantities)]
        return {"title": honest(title, ends), "grid": rows}

    return numbers


def honest(title: str, ends: Iterable[Ends]) -> str:
    """The title of what the paper shows; if something else is shown, it says so and names that."""
    others = stand_ins(one.setting for one in ends)
    return f"Stand-in for {title}\n{others}" if others else title


def claim(
    id: str, source: str, statement: str, expected: str, *needs: Figure, loss: str | None = None
) -> Callable[[Check], Check]:
    """Declare a claim on sweeps. The check gets every sweep of the figures once, at its last goal; with `loss` only
    those with this loss."""

    def declare(check: Check) -> Check:
        @PAPER.claim(id, source, statement, expected, needs=needs)
        @functools.wraps(check)
        def on_runs(*runs: Sequence[Any]) -> Finding:
            entries = {entry.id: at_last_goal(entry) for figure_runs in runs for entry in figure_runs}
            ends = [one for one in entries.values() if loss in (None, one.loss)]
            found, others = check(ends), stand_ins(one.setting for one in ends)
            return Finding(found.measured, found.holds, found.detail + (f"; stand-ins: {others}" if others else ""))

        return check

    return declare


def farthest_from_one(ratios: Iterable[float]) -> float:
    return max(ratios, key=lambda ratio: abs(np.log(ratio)), default=np.nan)


def at_the_edge(ends: list[Ends], name: str, *, above: float) -> tuple[float, str]:
    """The median of λη/2 over the rates from `above` to 3 η_c, of the sweep where it is farthest from 1."""
    medians = []
    for one in ends:
        rates = one.table["lr"]
        past = (rates > above * one.critical) & (rates < 3.01 * one.critical)
        medians.append(float(np.median(one.table[name][past] * rates[past] / 2)))
    return farthest_from_one(medians), f"{len(medians)} sweeps"


def rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(x, y).statistic)
