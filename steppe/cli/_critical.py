"""steppe critical: the critical learning rate of a row of table 1 or of the user's own problem, and its grids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from steppe.cli._shared import Computing, Flag, called, check_writable, print_json, print_table, writing
from steppe.experiments import Scale

if TYPE_CHECKING:
    from steppe.problem import Problem
    from steppe.rates import Critical as Found


@dataclass(frozen=True)
class Critical(Computing):
    """s₀, s_GF and the critical rate 2/s_GF of gradient descent, with the rates to try around it.

    Examples: steppe critical (all rows) · steppe critical fcn-relu-mnist-5k-mse-0.01 --scale smoke
    · steppe critical fcn-tanh-cifar-10-5k-mse-0.1 --scale laptop --sweep
    · steppe critical mymodel:problem --losses 0.1 --sweep --out sweep
    · steppe critical --results docs/results/conflicting-biases (all rows and what came out)
    """

    target: tyro.conf.Positional[str | None] = None
    """A row of table 1 of conflicting-biases, or MODULE:FUNCTION that makes a steppe.Problem (or it and one of test
    data). Default: list rows."""
    scale: Scale = "smoke"
    """Of a row. paper: the row itself. laptop (at most an hour) and smoke (seconds): stand-ins, smaller networks on
    fewer examples or on other data, which the output names."""
    losses: tuple[float, ...] = ()
    """Loss goals; a row has its own. Default for a problem: 0.1 and 0.01."""
    sweep: Flag = False
    """Also run gradient descent at every rate of the grids, to the losses that the flow reached; every run of a row is
    kept in the store (at smoke scale all of them as one)."""
    seconds: float | None = None
    """For a problem of yours: the longest time of the flow to each loss. Default: no limit."""
    out: Path | None = None
    """For a problem of yours with --sweep: draw the ends at the last loss to OUT.png, .pdf and .json."""
    results: Path | None = None
    """Folder of the figures of rows: all rows with their results, as a table in Markdown."""

    def __call__(self) -> int:
        from steppe.check import ArgumentError
        from steppe.papers.conflicting_biases.table_1 import rows

        if self.results is not None:
            return self._results(self.results)
        if self.target is None:
            return self._list(rows())
        if ":" in self.target:
            if self.out is not None and not self.sweep:
                raise ArgumentError("--out draws the ends of a sweep. Give --sweep too.")
            if self.out is not None:
                check_writable("--out", self.out.with_name(f"{self.out.name}.png"), folder=False)
            return self._own(self.target)
        if self.out is not None:
            remedy = f"steppe reproduce conflicting-biases/row-{self.target} --scale {self.scale} --out {self.out}"
            raise ArgumentError(f"--out is for a problem of yours. A row is drawn by: {remedy}")
        return self._row(self.target)

    def _results(self, folder: Path) -> int:
        from steppe.check import ArgumentError
        from steppe.papers.conflicting_biases.row_table import markdown

        if not any(folder.glob("row-*.json")):
            remedy = "Name the folder that steppe reproduce 'conflicting-biases/row-*' --out wrote."
            raise ArgumentError(f"--results: {folder} has no figure of a row. {remedy}")
        print(markdown(folder), end="")
        return 0

    def _own(self, target: str) -> int:
        from functools import partial

        from steppe import rates, until
        from steppe.cli._board import Board
        from steppe.rates import summary, summary_lines

        stop = None if self.seconds is None else until.seconds(self.seconds)
        problem, test = problems(target)
        with Board({target: target}, silent=self.json) as board:
            heard = partial(board, target, "running")
            found = rates.critical_rate(problem, losses=self.losses or (0.1, 0.01), stop=stop, progress=heard)
            # Descent to a loss that the flow did not reach would not end.
            reached = tuple(c for c in found if c.outcome == "reached" and isfinite(c.rate))
            if not self.sweep or not reached:
                return self._show(found)
            goals = [c.loss for c in reached]
            swept = rates.sweep(problem, goals=goals, critical=reached, test=test, progress=heard)
        written = []
        if self.out is not None:
            with writing("--out", self.out):
                written = rates.draw(swept, self.out)
        ends, outcomes = swept.at(goals[-1]), [d.outcome for d in swept.descents]
        came_to = summary(ends, reached[-1].rate)
        if self.json:
            columns = {name: column.tolist() for name, column in ends.items()}
            print_json({"critical": _shown(found), "ends": columns, "outcomes": outcomes} | came_to)
            return _code(found)
        self._show(found)
        print()
        print_table("", *ends_rows(ends, [d.lr for d in swept.descents], outcomes, reached[-1].rate))
        print("\n" + "\n".join([*summary_lines(came_to), *(f"wrote {path}" for path in written)]))
        return _code(found)

    def _list(self, rows: Any) -> int:
        if self.json:
            fields = ("name", "goal", "mark", "figures")
            print_json([{field: getattr(row, field) for field in fields} for row in rows.values()])
            return 0
        table = [(r.name, f"{r.goal:g}", r.mark, ", ".join(r.figures)) for r in rows.values()]
        print_table("", ("row", "loss goal", "U-shape as printed", "figures"), table)
        return 0

    def _row(self, name: str) -> int:
        from dataclasses import replace

        from steppe.check import numbers
        from steppe.papers.conflicting_biases.network_runs import critical_of
        from steppe.papers.conflicting_biases.network_scales import spec
        from steppe.papers.conflicting_biases.table_1 import row, stand_ins

        swept = spec(row(name), self.scale)
        others = stand_ins([swept.setting])
        if self.losses:
            goals = numbers("--losses", self.losses, above=0.0, rule="losses", remedy="For example: --losses 0.1 0.01")
            swept = replace(swept, goals=tuple(goals[::-1]))
        used = {"row": name, "setting": others or swept.setting.name, "stand_in": bool(others)}
        (flow,) = self.entries([(f"flow of {used['setting']}", swept.flow())])
        if not self.json:
            print(f"stand-in for {name}: {others}\n" if others else f"{name}: {used['setting']}\n")
        code = self._show(critical_of(flow), used, quiet=self.sweep and self.json)
        return self._sweep(used, swept, row(name).goal) if self.sweep else code

    def _sweep(self, used: Mapping[str, Any], swept: Any, goal: float) -> int:
        from steppe.papers.conflicting_biases.network_ends import at_goal, row_summary
        from steppe.rates import summary_lines

        (entry,) = self.entries([(f"sweep of {used['setting']}", swept)])
        ends = at_goal(entry, goal)
        came_to = row_summary(ends)
        if self.json:
            print_json(dict(used) | came_to)
            return 0
        print()
        print_table("", *ends_rows(ends.table, ends.rates, entry.result["outcomes"], ends.critical))
        print("\n" + "\n".join([came_to["setting"], *summary_lines(came_to)]))
        return 0

    def _show(self, found: "tuple[Found, ...]", used: Mapping[str, Any] | None = None, *, quiet: bool = False) -> int:
        shown = [dict(used or {}) | one for one in _shown(found)]
        if self.json:
            if not quiet:
                print_json(shown)
        else:
            names = (
                "loss", "outcome", "initial_sharpness", "largest_sharpness", "critical_rate", "interval", "time",
                "gradients",
            )  # fmt: skip
            titles = ("loss", "flow", "s₀", "s_GF", "η_c = 2/s_GF", "95% interval", "flow time", "gradients")
            print_table("", titles, [[_text(one[name]) for name in names] for one in shown])
            for name in ("fine_grid", "coarse_grid"):
                print(f"\n{name.replace('_', ' ')}: " + " ".join(f"{lr:.4g}" for lr in shown[-1][name]))
        return _code(found)


def _code(found: "tuple[Found, ...]") -> int:
    return 0 if found[-1].outcome == "reached" else 1


def _shown(found: "tuple[Found, ...]") -> list[dict[str, Any]]:
    return [
        {
            "loss": c.loss, "outcome": c.outcome, "initial_sharpness": c.initial_sharpness,
            "largest_sharpness": c.largest_sharpness, "critical_rate": c.rate,
            "interval": [c.eta_c.lower, c.eta_c.upper] if c.eta_c.converged else None, "time": c.time,
            "gradients": c.gradients, "fine_grid": c.fine_grid().tolist() if isfinite(c.rate) else [],
            "coarse_grid": c.coarse_grid().tolist() if isfinite(c.rate) else [],
        }
        for c in found
    ]  # fmt: skip


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " to ".join(map(_text, value))
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


# The columns that are shown, with their names in a sweep's table; the last where there is a test set.
_SHOWN = {
    "iterations": "steps", "sharpness": "sharpness", "2/η": "limit", "ℓ1": "l1", "ℓ2": "l2", "nuclear": "nuclear",
    "test loss": "test_loss",
}  # fmt: skip


def ends_rows(
    ends: Mapping[str, Any], rates: Sequence[float], outcomes: Sequence[str], critical: float
) -> tuple[list[str], list[list[str]]]:
    """Titles, and one line a rate: `ends` at one goal, of those that reached it at least."""
    place = {float(lr): k for k, lr in enumerate(ends["lr"])}
    columns = {title: ends[name] for title, name in _SHOWN.items() if name in ends}
    rows = []
    for lr, outcome in zip(rates, outcomes, strict=True):
        values = [f"{c[place[lr]]:.4g}" if outcome == "reached" else "" for c in columns.values()]
        rows.append([f"{lr / critical:.3f}", outcome, *values])
    return ["η/η_c", "outcome", *columns], rows


def problems(target: str) -> "tuple[Problem, Problem | None]":
    """What MODULE:FUNCTION returns: a problem, or it and one of test data."""
    from steppe.check import ArgumentError
    from steppe.problem import Problem

    made = called(target)
    pair = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(pair[0], Problem) or not isinstance(pair[1], Problem | None):
        raise ArgumentError(
            f"{target} returned {made!r}. It must return a steppe.Problem, or one and its test problem."
        )
    return pair
