"""steppe runs: look into the store."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from steppe.cli._shared import Stored, check_writable, duration, print_json, print_table, writing
from steppe.cli._store_care import CollectRuns, DiffRuns, MergeRuns, ReplayRun, TagRuns, VerifyRuns, whole_name

_LISTED = 100
_EMPTY = "no runs in {} yet. `steppe verify` computes some."


@dataclass(frozen=True)
class ListRuns(Stored):
    """The runs in the store, newest first, with the version of steppe that computed them and their last values.

    Example: steppe runs list --where "kind = 'own' and spec->>'$.settings.lr' < 0.1" --limit 5
    """

    where: str = "true"
    """An SQL condition on id, kind, seed, version, finished, seconds, outcome, spec, result (both JSON) and tags."""
    tag: str | None = None
    """Only runs with this tag."""
    limit: int | None = None
    """So many. Default: 100, and all of them with --json."""

    def __call__(self) -> int:
        from steppe.check import integer
        from steppe.store._query import listed

        if self.limit is not None:
            integer("--limit", self.limit, minimum=1)
        where = self.where if self.tag is None else f"({self.where}\n) AND list_contains(tags, {_quoted(self.tag)})"
        store, limit = self.opened(), self.limit or (None if self.json else _LISTED)
        count, rows = listed(store, where=where, limit=limit)
        if self.json:
            print_json([_shown(row) for row in rows])
        elif not rows:
            print(f"no such runs in {store.root}." if store.ids() else _EMPTY.format(store.root))
        else:
            columns = ("run", "kind", "seed", "steppe", "outcome", "took", "last values")
            print_table("", columns, [_row(_shown(row)) for row in rows])
            if count > len(rows):
                print(f"… and {count - len(rows):,} more: --limit, --where and --json show them.")
        return 0


@dataclass(frozen=True)
class ShowRun(Stored):
    """One run: its spec, versions, command and result."""

    id: tyro.conf.Positional[str] = ""
    """The run's name, or the beginning of it."""

    def __call__(self) -> int:
        store = self.opened()
        entry = store.open(whole_name(store, self.id))
        print_json({"id": entry.id, **entry.about, "result": entry.result, "folder": str(entry.folder)})
        return 0


@dataclass(frozen=True)
class QueryRuns(Stored):
    """SQL over all runs, the table `runs`, and their curves, the table `curves` with a column `run` (DuckDB). It reads
    only: no file, no extension, no network.

    Example: steppe runs query "SELECT run, max(test_accuracy) FROM curves GROUP BY run"
    """

    sql: tyro.conf.Positional[str] = ""
    """A SELECT over `curves` (run, step, epoch, and what was recorded) and `runs` (id, kind, seed, version, finished,
    seconds, outcome, spec, result, tags)."""

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
        names = [whole_name(store, id) for id in self.ids]
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
    """The curves of all runs as one file, with a column `run`: OUT.csv, OUT.parquet or OUT.npz."""

    out: tyro.conf.Positional[Path] = Path("runs.csv")
    """The file to write; its ending says the format."""

    def __call__(self) -> int:
        from steppe.store._query import export

        check_writable("the name", self.out, folder=False)
        with writing("the name", self.out):
            count = export(self.opened(), self.out)
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
    Annotated[DiffRuns, tyro.conf.subcommand("diff", prefix_name=False)]
    | Annotated[TagRuns, tyro.conf.subcommand("tag", prefix_name=False)]
    | Annotated[VerifyRuns, tyro.conf.subcommand("verify", prefix_name=False)]
    | Annotated[MergeRuns, tyro.conf.subcommand("merge", prefix_name=False)]
    | Annotated[CollectRuns, tyro.conf.subcommand("gc", prefix_name=False)]
    | Annotated[ReplayRun, tyro.conf.subcommand("replay", prefix_name=False)]
    | Annotated[ListRuns, tyro.conf.subcommand("list", prefix_name=False)]
    | Annotated[ShowRun, tyro.conf.subcommand("show", prefix_name=False)]
    | Annotated[QueryRuns, tyro.conf.subcommand("query", prefix_name=False)]
    | Annotated[RemoveRuns, tyro.conf.subcommand("remove", prefix_name=False)]
    | Annotated[ExportRuns, tyro.conf.subcommand("export", prefix_name=False)]
    | Annotated[MeasureSeconds, tyro.conf.subcommand("seconds", prefix_name=False)]
)


@dataclass(frozen=True)
class Runs:
    """Look into the store: list, show, compare, tag, query with SQL, export, verify, merge, replay, remove, clean up.

    Examples: steppe runs list · steppe runs query "SELECT run, max(epoch) FROM curves GROUP BY run"
    """

    action: tyro.conf.OmitArgPrefixes[Action]

    def __call__(self) -> int:
        return self.action()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the index as `runs list --json` prints it."""
    if row["damaged"] is not None:
        return {"id": row["id"], "damaged": row["damaged"]}
    known = {name: row[name] for name in ("id", "version", "seconds", "tags")}
    return {**json.loads(row["result"]), **known, "spec": json.loads(row["spec"])}


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
