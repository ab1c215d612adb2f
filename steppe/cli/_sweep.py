"""steppe sweep: many runs from one file, here, on a cluster, or as an array job."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from steppe.cli._shared import (
    Computing,
    Flag,
    check_writable,
    duration,
    print_json,
    print_table,
    writing,
)

if TYPE_CHECKING:
    from steppe.experiments import Experiment, Planned
    from steppe.sweep import SweepFile, Swept

_ROWS = 40


@dataclass(frozen=True)
class Sweep(Computing):
    """Many runs from one TOML file: a base, axes, measures and stops. Finished runs are never computed again.

    Examples: steppe sweep sweep.toml --dry-run · steppe sweep sweep.toml mine:problem --out lr --y sharpness
    · steppe sweep sweep.toml --scheduler tcp://head:8786 · steppe sweep sweep.toml --array 50 > sweep.sh
    """

    spec: tyro.conf.Positional[Path] = field(kw_only=True)
    """The TOML file; docs/sweeps.md shows one."""
    function: tyro.conf.Positional[str | None] = None
    """MODULE:FUNCTION of yours, if the file's base is one. A file cannot call your code unless you name it here."""
    dry_run: Flag = False
    """Show the runs, which of them exist, and how long the others will take; compute nothing."""
    only_failed: Flag = False
    """Only the runs that failed the last time."""
    limit: int | None = None
    """Compute at most this many of the runs that are not stored."""
    shuffle: Flag = False
    """In a random order: several commands on one store then seldom meet."""
    out: Path | None = None
    """Draw a column against an axis to OUT.png, .pdf and .json, with bands over the seeds."""
    x: str | None = None
    """The axis to draw against. Default: the first one of numbers."""
    y: str | None = None
    """The column to draw. Default: the loss."""
    scheduler: str | None = None
    """A scheduler of dask, tcp://host:port or tls://host:port. Default: processes of this machine."""
    tls: tuple[Path, Path, Path] | None = None
    """For tls://: the files of the authority, of the certificate and of its key."""
    array: int | None = None
    """Print a script for sbatch with this many tasks, and compute nothing."""
    run_seconds: float | None = None
    """A run that takes longer is ended, and counts as failed."""
    run_gigabytes: float | None = None
    """A run that takes more memory is ended, and counts as failed. Default: its share of the machine's memory."""

    def __call__(self) -> int:
        from steppe.check import ArgumentError, integer
        from steppe.sweep import read_sweep

        for name, value in (("--limit", self.limit), ("--array", self.array), ("--workers", self.workers)):
            if value is not None:
                integer(name, value, minimum=1)
        if (self.x or self.y) and self.out is None:
            raise ArgumentError("--x and --y say what is drawn. Give --out too.")
        file = read_sweep(self.spec)
        plan = self._plan(file)
        if self.array is not None:
            print(self._script(self.array), end="")
            return 0
        if self.out is not None:
            check_writable("--out", self.out.with_name(f"{self.out.name}.png"), folder=False)
        if self.dry_run:
            return self._dry(plan)
        swept = self._run(plan)
        x, y = self.x or file.figure.get("x"), self.y or file.figure.get("y")
        some = any(entry is not None for entry in swept.entries)
        written = self._drawn(swept, y, x, self.out) if self.out is not None and some else []
        return self._show(swept, written)

    def _plan(self, file: "SweepFile") -> "Planned":
        from steppe.experiments import planned
        from steppe.store import address

        store, plan = self.opened(), planned(self._bases(file), file.axes)
        if self.only_failed:
            failed = store.failures()
            plan = plan.chosen(lambda spec: address(spec) in failed)
        if self.limit is not None:
            plan = plan.chosen(lambda spec: store.get(spec) is None, self.limit)
        return plan.shuffled() if self.shuffle else plan

    def _bases(self, file: "SweepFile") -> "list[Experiment]":
        """The specs that the axes change."""
        from steppe import until
        from steppe.check import ArgumentError, integer, suggest
        from steppe.experiments import changed, own

        if ":" in file.base:
            if self.function != file.base:
                got = f"you named {self.function}" if self.function else "you have not named it"
                remedy = f"If you trust it: steppe sweep {self.spec} {file.base}"
                raise ArgumentError(f"{self.spec} calls the function {file.base}, and {got}. {remedy}")
            stop = until.Stop()
            for name, value in file.stop.items():
                kinds = ("loss", "steps", "epochs", "time", "seconds")
                if name not in kinds:
                    raise ArgumentError(f"{self.spec}: no stop is called {name!r}. {suggest(name, kinds)}")
                stop = stop | getattr(until, name)(value)
            kept = stop if file.stop else None
            return [own(file.base, dynamics=file.dynamics, measures=file.measures, stop=kept, **file.set)]
        if self.function is not None:
            raise ArgumentError(f"{self.spec} is about {file.base}; it calls no function. Leave {self.function!r} out.")
        for name in ("stop", "measures"):
            if getattr(file, name):
                raise ArgumentError(f"{self.spec}: {name} are for a function of yours; {file.base} has its own.")
        runs = self._figure_runs(file)
        if file.run is not None:
            if integer("run", file.run, minimum=0) >= len(runs):
                raise ArgumentError(f"{self.spec}: run {file.run} of {file.base} is one of {len(runs)}, from 0 on.")
            runs = [runs[file.run]]
        return [changed(run, file.set) for run in runs]

    def _figure_runs(self, file: "SweepFile") -> "list[Any]":
        from steppe.check import ArgumentError
        from steppe.cli._names import find

        figures = [figure for one in find([file.base]) for figure in one.figures]
        if len(figures) != 1 or file.scale not in figures[0].runs:
            named = ", ".join(f"{f.name} ({', '.join(f.runs)})" for f in figures[:6]) or "none"
            raise ArgumentError(
                f"{self.spec}: base and scale must name one figure and one of its scales; found {named}."
            )
        return list(figures[0].runs[file.scale])  # type: ignore[index]

    def _script(self, tasks: int) -> str:
        from steppe.sweep import array_script

        asked = [str(self.spec)] + ([self.function] if self.function else [])
        options: dict[str, Any] = {"--store": self.opened().root.absolute(), "--run-seconds": self.run_seconds}
        options |= {"--run-gigabytes": self.run_gigabytes, "--out": self.out, "--x": self.x, "--y": self.y}
        given = [text for name, value in options.items() if value is not None for text in (name, str(value))]
        flags = ["--only-failed"] * self.only_failed
        command = [sys.executable, "-m", "steppe", "sweep", *asked, *given, *flags]
        return array_script(command, name=self.spec.stem, folder=str(Path.cwd()), tasks=tasks, cores=self.workers or 1)

    def _dry(self, plan: "Planned") -> int:
        from steppe.store import address, expected_seconds

        store = self.opened()
        estimate = expected_seconds(store, plan.specs)
        failed = store.failures()
        states = [
            "stored" if seconds == 0 else "failed before" if address(spec) in failed else "to compute"
            for spec, seconds in zip(plan.specs, estimate.seconds, strict=True)
        ]
        rows = list(zip(map(address, plan.specs), states, plan.labels, strict=True))
        left = [s for s in estimate.seconds if s != 0]
        known = [s for s in left if s is not None]
        if self.json:
            runs = [
                {"run": id, "state": state, **point} for (id, state, _), point in zip(rows, plan.points, strict=True)
            ]
            print_json({"runs": runs, "core_seconds": sum(known) if known else None, "similar": estimate.similar})
            return 0
        print_table("", ("run", "state", "point"), rows[:_ROWS])
        if len(rows) > _ROWS:
            print(f"… and {len(rows) - _ROWS:,} more: --json shows all.")
        cost = "no similar run is stored, so the time is not known"
        if known:
            total = sum(known) * len(left) / len(known)
            cost = f"about {duration(total)} of one core, as {estimate.similar:,} similar runs took"
        print(f"{len(rows):,} runs, {len(left):,} to compute" + (f": {cost}" if left else ""))
        return 0

    def _run(self, plan: "Planned") -> "Swept":
        from steppe.check import number
        from steppe.cli._board import Board
        from steppe.store import address
        from steppe.sweep import Limits, memory_share

        labels = {address(spec): label for spec, label in zip(plan.specs, plan.labels, strict=True)}
        store = self.opened()
        memory = memory_share(self.workers)
        if self.run_gigabytes is not None:
            memory = number("--run-gigabytes", self.run_gigabytes, above=0.0) * 2**30
        seconds = float("inf")
        if self.run_seconds is not None:
            seconds = number("--run-seconds", self.run_seconds, above=0.0)
        limits = Limits(memory, seconds)
        with Board(labels, silent=self.json) as board:
            engine = None
            if self.scheduler is not None:
                from steppe.sweep import Dask

                options: dict[str, Any] = {"recompute": self.recompute, "limits": limits, "tls": self.tls}
                scheduler = self.scheduler
                engine = lambda: Dask(scheduler, store, watch=board, **options)  # noqa: E731
            return plan.run(
                store, workers=self.workers, recompute=self.recompute, limits=limits, watch=board, engine=engine
            )

    def _drawn(self, swept: "Swept", y: str | None, x: str | None, out: Path) -> list[Path]:
        from steppe import figures

        numbers = swept.numbers(y, x)
        with writing("--out", out):
            out.parent.mkdir(parents=True, exist_ok=True)
            return figures.save(figures.panels(numbers), numbers, out)

    def _show(self, swept: "Swept", written: list[Path]) -> int:
        table = swept.table()
        columns = {name: column.tolist() for name, column in table.items()}
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        if self.json:
            print_json({"runs": rows, "failures": dict(swept.failures), "written": [str(path) for path in written]})
        else:
            shown = list(columns)[:12]
            print_table("", shown, [[_cell(row[name]) for name in shown] for row in rows[:_ROWS]])
            if len(rows) > _ROWS:
                print(f"… and {len(rows) - _ROWS:,} more: --json shows all, steppe runs query asks them.")
            for id, why in swept.failures.items():
                print(f"failed {id}: {' '.join(why.split())}", file=sys.stderr)
            if swept.failures:
                print(f"{len(swept.failures)} runs failed; --only-failed tries them again.", file=sys.stderr)
            for path in written:
                print(f"wrote {path}")
        return 1 if swept.failures else 0


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
