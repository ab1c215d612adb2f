"""SQL over the Parquet files of all runs."""

from pathlib import Path
from typing import Any

from steppe.store._files import StoreError, disk_errors, verified_about
from steppe.store._spec import dumps
from steppe.store._store import Store


def query(store: Store, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Column names and rows of a SELECT over the tables `curves` (with a column `run`) and `runs` (id, kind, spec)."""
    import duckdb

    with _database(store) as db:
        db.execute("SET enable_external_access = false")  # a query must not write files
        try:
            answer = db.sql(sql)
        except duckdb.Error as error:
            raise StoreError(f"the database cannot run this query: {error}") from None
        if answer is None:
            raise StoreError('the query returns no table. Write a SELECT, for example "SELECT * FROM curves LIMIT 5".')
        return answer.columns, answer.fetchall()


def export_csv(store: Store, path: Path) -> int:
    """Write all curves to a CSV file, under a temporary name first. Returns the number of runs."""
    fresh = path.with_name(path.name + ".new")
    with disk_errors(path.parent, "write"), _database(store) as db:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            db.sql("SELECT * FROM curves ORDER BY run, step").write_csv(str(fresh))
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)
    return len(store.ids())


def _database(store: Store) -> Any:
    """A database in memory with a copy of the curves of all runs. The files are checked first."""
    import duckdb

    folders = [store.root / id for id in store.ids()]
    if not folders:
        raise StoreError(f"no runs in {store.root} yet. `steppe verify` computes some.")
    abouts = {folder.name: verified_about(folder) for folder in folders}
    db = duckdb.connect()
    files = [str(folder / "curves.parquet") for folder in folders]
    db.sql(
        "CREATE TABLE curves AS SELECT parse_path(filename)[-2] AS run, * EXCLUDE (filename) "
        "FROM read_parquet($files, filename = true, union_by_name = true)",
        params={"files": files},
    )
    db.execute("CREATE TABLE runs (id VARCHAR, kind VARCHAR, spec JSON)")
    db.executemany(
        "INSERT INTO runs VALUES (?, ?, ?)",
        [(id, about["spec"]["kind"], dumps(about["spec"])) for id, about in abouts.items()],
    )
    return db
