"""steppe critical: the critical learning rate of a row of table 1 or of the user's own problem, and its grids."""

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import tyro

from steppe.cli.common import Flag, print_json, print_table
from steppe.cli.computing import Computing
from steppe.papers.catalogue import Scale

if TYPE_CHECKING:
    from steppe.rates import Critical as Found


@dataclass(frozen=True)
class Critical(Computing):
    """s₀, s_GF and the critical rate 2/s_GF of gradient descent, with the rates to try around it.

    Examples: steppe critical (all rows) · steppe critical fcn-relu-mnist-5k-mse-0.01 --scale smoke
    · steppe critical fcn-tanh-cifar-10-5k-mse-0.1 --scale laptop --sweep · steppe critical mymodel:problem --losses 0.1
    """

    target: tyro.conf.Positional[str | None] = None
    """A row of table 1 of conflicting-biases, or MODULE:FUNCTION that makes a steppe.Problem. Default: list rows."""
    scale: Scale = "smoke"
    """Of a row. smoke: seconds. laptop: at most an hour. paper: the paper's own sizes."""
    losses: tuple[float, ...] = ()
    """Loss goals; a row has its own. Default for a problem: 0.1 and 0.01."""
    sweep: Flag = False
    """Also run gradient descent at every rate of a row's grids; every run is kept in the store."""

    def __call__(self) -> int:
        from steppe.papers.conflicting_biases.networks_table import rows

        if self.target is None:
            return self._list(rows())
        if ":" in self.target:
            return self._own(self.target)
        return self._row(self.target)

    def _own(self, target: str) -> int:
        from functools import partial

        from steppe.check import refuse
        from steppe.cli.board import Board
        from steppe.rates import critical_rate

        if self.sweep:
            refuse("--sweep", "given with a row of table 1", target, "For a problem of yours call steppe.rates.sweep.")
        problem = _problem(target)
        with Board({target: target}, silent=self.json) as board:
            told = partial(board, target, "running")
            found = critical_rate(problem, losses=self.losses or (0.1, 0.01), progress=told)
        return self._show(found)

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
        from steppe.papers.conflicting_biases.networks_scales import spec
        from steppe.papers.conflicting_biases.networks_specs import critical_of
        from steppe.papers.conflicting_biases.networks_table import row

        swept = spec(row(name), self.scale)
        if self.losses:
            goals = numbers("--losses", self.losses, above=0.0, rule="losses", remedy="For example: --losses 0.1 0.01")
            swept = replace(swept, goals=tuple(goals[::-1]))
        (flow,) = self.entries([(f"flow of {name}", swept.flow())])
        code = self._show(critical_of(flow), quiet=self.sweep and self.json)
        return self._sweep(swept) if self.sweep else code

    def _sweep(self, swept: Any) -> int:
        from steppe.cli.board import Board
        from steppe.papers.conflicting_biases.networks_report import ends_rows, summary
        from steppe.papers.conflicting_biases.networks_stored import stored_sweep

        with Board({}, silent=self.json) as board:
            entry = stored_sweep(swept, self.opened(), workers=self.workers or 1, watch=board)
        if self.json:
            print_json(summary(entry))
            return 0
        print()
        columns = ("η/η_c", "outcome", "iterations", "sharpness", "2/η", "ℓ1", "ℓ2", "nuclear", "test loss")
        print_table("", columns, ends_rows(entry))
        print("\n" + "\n".join(f"{key}: {value}" for key, value in summary(entry).items()))
        return 0

    def _show(self, found: "tuple[Found, ...]", *, quiet: bool = False) -> int:
        shown = [
            {
                "loss": c.loss, "outcome": c.outcome, "initial_sharpness": c.initial_sharpness,
                "largest_sharpness": c.largest_sharpness, "critical_rate": c.rate, "time": c.time,
                "gradients": c.gradients, "fine_grid": c.fine_grid().tolist() if isfinite(c.rate) else [],
                "coarse_grid": c.coarse_grid().tolist() if isfinite(c.rate) else [],
            }
            for c in found
        ]  # fmt: skip
        if self.json:
            if not quiet:
                print_json(shown)
        else:
            names = ("loss", "outcome", "initial_sharpness", "largest_sharpness", "critical_rate", "time", "gradients")
            titles = ("loss", "flow", "s₀", "s_GF", "η_c = 2/s_GF", "flow time", "gradients")
            print_table("", titles, [[_text(one[name]) for name in names] for one in shown])
            for name in ("fine_grid", "coarse_grid"):
                print(f"\n{name.replace('_', ' ')}: " + " ".join(f"{lr:.4g}" for lr in shown[-1][name]))
        return 0 if found[-1].outcome == "reached" else 1


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _problem(target: str) -> Any:
    """What MODULE:FUNCTION returns, looked for in the current folder too."""
    import sys

    from steppe.check import ArgumentError
    from steppe.problems import Problem

    sys.path.insert(0, "")
    try:
        made = _function(target)()
    finally:
        sys.path.remove("")
    if not isinstance(made, Problem):
        raise ArgumentError(f"{target} returned {made!r}. It must return a steppe.Problem.")
    return made


def _function(target: str) -> Any:
    import importlib
    import inspect

    from steppe.check import ArgumentError

    module, _, name = target.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
        inspect.signature(function).bind()
    except (ImportError, AttributeError, TypeError, ValueError) as error:  # the last two: no such call, no such name
        remedy = "Name MODULE:FUNCTION, a function of no arguments."
        raise ArgumentError(f"cannot use {target!r}: {error}. {remedy}") from error
    return function
