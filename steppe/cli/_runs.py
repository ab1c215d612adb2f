"""steppe runs: look into the store."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from steppe.cli._shared import Stored, check_writable, duration, print_json, print_table, writing

if TYPE_CHECKING:
    from steppe.store import Store


@dataclass(frozen=True)
class ListRuns(Stored):
    """The runs in the store, with the version of steppe that computed them, their outcome and last measured values."""

    def __call__(self) -> int:
        from steppe.store import StoreError

        store, rows = self.opened(), []
        for id in store.ids():
            try:
                entry = store.open(id)
                known = {"version": entry.version, "spec": dict(entry.spec), "seconds": entry.about["seconds"]}
                rows.append({**entry.result, "id": id, **known})
            except StoreError as error:
                rows.append({"id": id, "damaged": str(error)})
        if self.json:
            print_json(rows)
        elif not rows:
            print(f"no runs in {store.root} yet. `steppe verify` computes some.")
        else:
            columns = ("run", "kind", "seed", "steppe", "outcome", "took", "last values")
            print_table("", columns, [_row(r) for r in rows])
        return 0


@dataclass(frozen=True)
class ShowRun(Stored):
    """One run: its spec, versions, command and result."""

    id: tyro.conf.Positional[str] = ""
    """The run's name, or the beginning of it."""

    def __call__(self) -> int:
        store = self.opened()
        entry = store.open(_whole(store, self.id))
        print_json({"id": entry.id, **entry.about, "result": entry.result, "folder": str(entry.folder)})
        return 0


@dataclass(frozen=True)
class QueryRuns(Stored):
    """SQL over the curves of all runs, as the table `curves` with a column `run` (DuckDB).

    Example: steppe runs query "SELECT run, max(test_accuracy) FROM curves GROUP BY run"
    """

    sql: tyro.conf.Positional[str] = ""
    """A SELECT over `curves` (run, step, epoch, and what was recorded) and `runs` (id and the spec's fields)."""

    def __call__(self) -> int:
        from steppe.store._query import query

        columns, rows = query(self.opened(), self.sql)
        if self.json:
            print_json([dict(zip(columns, row, strict=True)) for row in rows])
        else:
            print_table("", columns, [[str(v) for v in row] for row in rows])
        return 0


@dataclass(frozen=True)
class RemoveRuns(Stored):
    """Drop runs from the store, damaged ones too."""

    ids: tyro.conf.Positional[tuple[str, ...]] = ()
    """Names of runs, or the beginnings of names."""

    def __call__(self) -> int:
        from steppe.check import ArgumentError

        store = self.opened()
        names = [_whole(store, id) for id in self.ids]
        if not names:
            raise ArgumentError("name the runs to remove. `steppe runs list` shows them.")
        for name in names:
            store.remove(name)
        if self.json:
            print_json(names)
        else:
            print("\n".join(f"removed {name}" for name in names))
        return 0


@dataclass(frozen=True)
class ExportRuns(Stored):
    """The curves of all runs as one CSV file, with a column `run`."""

    out: tyro.conf.Positional[Path] = Path("runs.csv")
    """The file to write."""

    def __call__(self) -> int:
        from steppe.store._query import export_csv

        check_writable("the name", self.out, folder=False)
        with writing("the name", self.out):
            count = export_csv(self.opened(), self.out)
        if self.json:
            print_json({"path": str(self.out), "runs": count})
        else:
            print(f"wrote {self.out}: {count} runs")
        return 0


@dataclass(frozen=True)
class MeasureSeconds(Stored):
    """Take the times that `steppe list` shows from the runs in the store, for every figure whose runs are there.

    It writes a file of the package: use it in a checkout.
    """

    def __call__(self) -> int:
        from steppe.experiments import update_expected_seconds
        from steppe.papers import papers

        figures = [figure for paper in papers().values() for figure in paper.figures]
        count = update_expected_seconds(figures, self.opened())
        if self.json:
            print_json({"figures": count})
        else:
            print(f"took the seconds of {count} figures from {self.opened().root}")
        return 0


Action = (
    Annotated[ListRuns, tyro.conf.subcommand("list", prefix_name=False)]
    | Annotated[ShowRun, tyro.conf.subcommand("show", prefix_name=False)]
    | Annotated[QueryRuns, tyro.conf.subcommand("query", prefix_name=False)]
    | Annotated[RemoveRuns, tyro.conf.subcommand("remove", prefix_name=False)]
    | Annotated[ExportRuns, tyro.conf.subcommand("export", prefix_name=False)]
    | Annotated[MeasureSeconds, tyro.conf.subcommand("seconds", prefix_name=False)]
)


@dataclass(frozen=True)
class Runs:
    """Look into the store: list, show, query with SQL, remove, export to CSV.

    Examples: steppe runs list · steppe runs query "SELECT run, max(epoch) FROM curves GROUP BY run"
    """

    action: tyro.conf.OmitArgPrefixes[Action]

    def __call__(self) -> int:
        return self.action()


def _whole(store: "Store", beginning: str) -> str:
    """The one run whose name begins so."""
    from steppe.check import suggest
    from steppe.store import StoreError

    matches = [id for id in store.ids() if beginning and id.startswith(beginning)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise StoreError(f"{beginning!r} begins the names of {len(matches)} runs. Give more of the name.")
    hint = suggest(beginning, store.ids()) if store.ids() else "The store is empty."
    raise StoreError(f"no run {beginning!r} in {store.root}. {hint}")


def _row(row: dict[str, Any]) -> list[str]:
    if "damaged" in row:
        return [row["id"], "", "", "", "damaged", "", row["damaged"]]
    final = row.get("final", {})
    last = "  ".join(f"{name} {value:.4g}" for name, value in final.items() if isinstance(value, int | float))
    spec = row["spec"]
    return [
        row["id"],
        spec["kind"],
        str(spec.get("seed", "")),
        row["version"],
        row.get("outcome", ""),
        duration(row["seconds"]),
        last,
    ]
