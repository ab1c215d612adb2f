"""SQL over the Parquet files of all runs."""

import tempfile
from pathlib import Path
from typing import Any

from steppe.store._files import StoreError
from steppe.store._spec import dumps
from steppe.store._store import Store

_MOST_ROWS = 1_000_000


def query(store: Store, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Column names and rows of a SELECT over the tables `curves` (with a column `run`) and `runs` (id, kind, spec)."""
    import duckdb

    with _database(store) as db:
        db.execute("SET enable_external_access = false")  # a query must not write files
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


def export_csv(store: Store, path: Path) -> int:
    """Write all curves to a CSV file, under a temporary name first. Returns the number of runs."""
    import duckdb

    with _database(store) as db:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".", dir=path.parent) as unfinished:
            fresh = Path(unfinished) / "runs.csv"
            try:
                db.sql("SELECT * FROM curves ORDER BY run, step").write_csv(str(fresh))
            except duckdb.IOException as error:
                raise OSError(str(error)) from error
            fresh.replace(path)
    return len(store.ids())


def _database(store: Store) -> Any:
    """A database in memory with a copy of the curves of all runs. The files are checked first."""
    import duckdb

    entries = [store.open(id) for id in store.ids()]
    if not entries:
        raise StoreError(f"no runs in {store.root} yet. `steppe verify` computes some.")
    db = duckdb.connect()
    try:
        db.sql(
            "CREATE TABLE curves AS SELECT parse_path(filename)[-2] AS run, * EXCLUDE (filename) "
            "FROM read_parquet($files, filename = true, union_by_name = true)",
            params={"files": [str(entry.folder / "curves.parquet") for entry in entries]},
        )
    except duckdb.Error as error:
        raise StoreError(f"the database cannot read the runs in {store.root}: {error}") from None
    db.execute("CREATE TABLE runs (id VARCHAR, kind VARCHAR, spec JSON)")
    db.executemany(
        "INSERT INTO runs VALUES (?, ?, ?)",
        [(entry.id, entry.spec["kind"], dumps(entry.spec)) for entry in entries],
    )
    return db
