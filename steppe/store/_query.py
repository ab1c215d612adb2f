"""SQL over all runs: their index, their tags, and the Parquet files of their curves; and exports of it."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from steppe.store._files import StoreError
from steppe.store._index import indexed
from steppe.store._store import Entry, Store

_MOST_ROWS = 1_000_000
_VIEW = """CREATE VIEW runs AS SELECT id, kind, seed, version, finished, seconds, outcome, spec::JSON AS spec,
    result::JSON AS result, damaged, coalesce(tags, []) AS tags
    FROM indexed LEFT JOIN (SELECT id, list(tag ORDER BY tag) AS tags FROM tags GROUP BY id) USING (id)"""
LISTED = ("id", "kind", "seed", "version", "outcome", "seconds", "spec", "result", "damaged", "tags")


def query(store: Store, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Column names and rows of a SELECT over the tables `runs` and `curves` (with a column `run`).

    `runs` has id, kind, seed, version, finished, seconds, outcome, spec and result (JSON), damaged, tags.
    """
    if not store.ids():
        raise StoreError(f"no runs in {store.root} yet. `steppe verify` computes some.")
    with _database(store, curves="curves" in sql.lower()) as db:
        return _answer(db, sql)


def listed(store: Store, *, where: str = "true", limit: int | None = None) -> tuple[int, list[dict[str, Any]]]:
    """How many runs fulfil an SQL condition, and the newest of them."""
    with _database(store, curves=False) as db:
        _, ((count,),) = _answer(db, f"SELECT count(*) FROM runs WHERE ({where}\n)")
        most = "" if limit is None else f" LIMIT {limit:d}"
        sql = f"SELECT {', '.join(LISTED)} FROM runs WHERE ({where}\n) ORDER BY finished DESC NULLS FIRST, id{most}"
        names, rows = _answer(db, sql)
    return count, [dict(zip(names, row, strict=True)) for row in rows]


def _answer(db: Any, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    import duckdb

    try:
        statements = db.extract_statements(sql)
        # Other statements change the database or its settings, and some of them abort the process.
        if [s.type for s in statements] not in ([duckdb.StatementType.SELECT], [duckdb.StatementType.EXPLAIN]):
            remedy = 'Write one SELECT, for example "SELECT * FROM curves LIMIT 5".'
            raise StoreError(f"the database cannot run this query: it is not one SELECT. {remedy}")
        answer = db.execute(statements[0])
        columns, rows = [name for name, *_ in answer.description], answer.fetchmany(_MOST_ROWS + 1)
    except duckdb.Error as error:
        raise StoreError(f"the database cannot run this query: {error}") from None
    if len(rows) > _MOST_ROWS:
        raise StoreError(f"the query has more than {_MOST_ROWS:,} rows. Add a LIMIT, or use `steppe runs export`.")
    return columns, rows


def export(store: Store, path: Path) -> int:
    """Write the curves of all runs to a file, under a temporary name first; its ending says the format: .csv, .parquet
    or .npz. Returns the number of runs."""
    writers: dict[str, Callable[[Any, Path], None]] = {".csv": _csv, ".parquet": _parquet, ".npz": _npz}
    if path.suffix not in writers:
        raise StoreError(f"cannot export to {path}: its name must end in {', '.join(writers)}.")
    if not store.ids():
        raise StoreError(f"no runs in {store.root} yet. `steppe verify` computes some.")
    import duckdb

    with _database(store, curves=True, locked=False) as db:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".", dir=path.parent) as unfinished:
            fresh = Path(unfinished) / f"runs{path.suffix}"
            try:
                writers[path.suffix](db.sql("SELECT * FROM curves ORDER BY run, step"), fresh)
            except duckdb.IOException as error:
                raise OSError(str(error)) from error
            fresh.replace(path)
    return len(store.ids())


def _csv(rows: Any, path: Path) -> None:
    rows.write_csv(str(path))


def _parquet(rows: Any, path: Path) -> None:
    rows.write_parquet(str(path), compression="zstd")


def _npz(rows: Any, path: Path) -> None:
    """One array a column; a missing number is NaN."""
    import numpy as np

    columns = {n: np.ma.filled(c, np.nan) if np.ma.isMaskedArray(c) else c for n, c in rows.fetchnumpy().items()}
    arrays: dict[str, Any] = {n: c.astype(str) if c.dtype == object else c for n, c in columns.items()}
    np.savez_compressed(path, **arrays)


@contextlib.contextmanager
def _database(store: Store, *, curves: bool, locked: bool = True) -> Iterator[Any]:
    """A database in memory with a copy of what is asked for. `locked`: it reaches no file, extension or network."""
    with indexed(store) as db:
        db.execute("ALTER TABLE runs RENAME TO indexed")
        db.execute("CREATE TABLE tags (id VARCHAR, tag VARCHAR)")
        if pairs := [(id, tag) for tag, ids in store.tags().items() for id in ids]:
            db.executemany("INSERT INTO tags VALUES (?, ?)", pairs)
        db.execute(_VIEW)
        if curves:
            _copy_curves(db, store, [store.open(id) for id in store.ids()])
        if locked:
            for setting in ("enable_external_access", "autoinstall_known_extensions", "autoload_known_extensions"):
                db.execute(f"SET {setting} = false")
            db.execute("SET lock_configuration = true")
        yield db


def _copy_curves(db: Any, store: Store, entries: Sequence[Entry]) -> None:
    """The curves of runs whose files were checked when they were opened."""
    import duckdb

    try:
        db.sql(
            "CREATE TABLE curves AS SELECT parse_path(filename)[-2] AS run, * EXCLUDE (filename) "
            "FROM read_parquet($files, filename = true, union_by_name = true)",
            params={"files": [str(entry.folder / "curves.parquet") for entry in entries]},
        )
    except duckdb.Error as error:
        raise StoreError(f"the database cannot read the runs in {store.root}: {error}") from None
