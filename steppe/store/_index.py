"""An index of all runs, so that a hundred thousand are listed and filtered at once.

It is a Parquet file in `.index`, named by its own sha256. It is made from the folders and never trusted over them: a
run whose folder or files changed since is read again, and a damaged index is ignored and made anew.
"""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from steppe.store._files import DATA_FILES, StoreError, sha256
from steppe.store._spec import canonical, dumps
from steppe.store._store import Store

_FOLDER = ".index"
# Columns of the table `runs`; `stamp` tells whether the folder is as it was when it was read.
_COLUMNS = {
    "id": "VARCHAR", "kind": "VARCHAR", "seed": "BIGINT", "version": "VARCHAR", "finished": "VARCHAR",
    "seconds": "DOUBLE", "outcome": "VARCHAR", "spec": "VARCHAR", "result": "VARCHAR", "damaged": "VARCHAR",
    "stamp": "BIGINT",
}  # fmt: skip
# The numbers of a result are in the index, its lists are not.
_LONGEST_VALUE = 400


@contextlib.contextmanager
def indexed(store: Store) -> Iterator[Any]:
    """A database in memory with the table `runs`, one row a run, as the folders are now."""
    import duckdb

    with duckdb.connect() as db:
        types = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
        db.execute(f"CREATE TABLE runs ({types})")
        _load(db, store.root / _FOLDER)
        known = db.execute("SELECT id, stamp FROM runs").fetchnumpy()
        before = dict(zip(known["id"].tolist(), known["stamp"].tolist(), strict=True))
        now = _stamps(store)
        fresh = [id for id, stamp in now.items() if before.get(id) != stamp]
        old = [*(before.keys() - now.keys()), *(id for id in fresh if id in before)]
        _delete_rows(db, old)
        _insert(db, [_row(store, id, now[id]) for id in fresh])
        if fresh or old:
            with contextlib.suppress(OSError):  # of a store that may only be read
                _save(db, store.root / _FOLDER)
        yield db


def _stamps(store: Store) -> dict[str, int]:
    """What tells a changed run: the identities and times of its files, as one number."""
    found, root = {}, str(store.root)
    for id in store.ids():
        parts: list[int] = []
        for name in _LOOKED_AT:
            try:
                s = os.lstat(f"{root}/{id}{name}")
                parts += (s.st_ino, s.st_ctime_ns)
            except OSError:
                parts.append(0)
        found[id] = hash(tuple(parts)) | 1  # of whole numbers: the same in every process; never 0
    return found


_LOOKED_AT = tuple(f"/{name}" for name in ("spec.json", *DATA_FILES))


def _row(store: Store, id: str, stamp: int) -> list[Any]:
    row: dict[str, Any] = dict.fromkeys(_COLUMNS) | {"id": id, "stamp": stamp}
    try:
        entry = store.open(id)
        spec, result = dict(entry.spec), entry.result
        short = {k: v for k, v in result.items() if len(dumps(v)) <= _LONGEST_VALUE}
        seed, outcome = spec.get("seed"), result.get("outcome")
        row |= {
            "kind": str(spec.get("kind")),
            "seed": seed if isinstance(seed, int) and not isinstance(seed, bool) and abs(seed) < 2**63 else None,
            "version": str(entry.version),
            "finished": str(entry.about.get("finished")),
            "seconds": float(entry.about.get("seconds", 0.0)),
            "outcome": outcome if isinstance(outcome, str) else None,
            "spec": dumps(spec),
            "result": dumps(short),
        }
    except (StoreError, TypeError, ValueError, AttributeError) as error:
        row["damaged"] = str(error)
        row["stamp"] = 0  # looked at again each time
    return list(row.values())


def _insert(db: Any, rows: Sequence[Sequence[Any]]) -> None:
    import numpy as np

    if rows:
        table = {}
        for k, (name, kind) in enumerate(_COLUMNS.items()):
            column = [row[k] for row in rows]
            if kind == "DOUBLE":
                table[name] = np.array([np.nan if v is None else v for v in column])
            else:
                table[name] = np.array(["" if v is None else str(v) for v in column], dtype=object)
        db.register("fresh", table)
        chosen = ", ".join(n if k == "DOUBLE" else f"TRY_CAST(NULLIF({n}, '') AS {k})" for n, k in _COLUMNS.items())
        db.execute(f"INSERT INTO runs SELECT {chosen} FROM fresh")
        db.unregister("fresh")


def _delete_rows(db: Any, ids: Sequence[str]) -> None:
    import numpy as np

    if ids:
        db.register("gone", {"id": np.array(ids, dtype=object)})
        db.execute("DELETE FROM runs WHERE id IN (SELECT id FROM gone)")
        db.unregister("gone")


def _load(db: Any, folder: Path) -> None:
    """The newest index that is whole; nothing if there is none."""
    import duckdb

    with contextlib.suppress(OSError):
        files = sorted(folder.glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
        for path in files:
            if path.is_file() and sha256(path) == path.stem:
                try:
                    db.execute(f"INSERT INTO runs SELECT {', '.join(_COLUMNS)} FROM read_parquet(?)", [str(path)])
                    return
                except duckdb.Error:  # of another version
                    db.execute("DELETE FROM runs")


def _save(db: Any, folder: Path) -> None:
    """Under a temporary name first. Of two processes that save at once, one wins; both are right."""
    import duckdb

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".", dir=folder) as unfinished:
        fresh = Path(unfinished) / "runs"
        target = str(fresh).replace("'", "''")
        try:
            db.execute(f"COPY runs TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
        except duckdb.IOException as error:
            raise OSError(str(error)) from error
        name = f"{sha256(fresh)}.parquet"
        older = [path for path in folder.glob("*.parquet") if path.name != name]
        fresh.replace(folder / name)
        for path in older:
            path.unlink(missing_ok=True)


class Expected(NamedTuple):
    """Seconds of one core of each run: 0 if it is stored, None if no `similar` run is."""

    seconds: list[float | None]
    similar: int


def expected_seconds(store: Store, specs: Iterable[Any]) -> Expected:
    """What runs will take, from stored ones of the same kind: the median of those that share most of their fields."""
    import numpy as np

    specs = list(specs)
    plain = [canonical(spec) for spec in specs]
    stored = [store.get(spec) is not None for spec in specs]
    kinds = sorted({one["kind"] for one in plain})
    with indexed(store) as db:
        asked = ", ".join("?" for _ in kinds)
        sql = f"SELECT spec, seconds FROM runs WHERE damaged IS NULL AND kind IN ({asked}) ORDER BY finished DESC"
        rows = db.execute(f"{sql} LIMIT {_MOST_SIMILAR}", kinds).fetchall() if kinds else []
    known = [(flat(json.loads(spec)), seconds) for spec, seconds in rows]
    cache: dict[str, float | None] = {}

    def guess(one: dict[str, Any]) -> float | None:
        # Seeds differ without changing the time.
        mine = {name: value for name, value in flat(one).items() if not name.endswith("seed")}
        key = dumps(mine)
        if key not in cache:
            shared = [sum(other.get(name) == value for name, value in mine.items()) for other, _ in known]
            same = [i for i, (other, _) in enumerate(known) if other["kind"] == one["kind"]]
            most = max((shared[i] for i in same), default=0)
            cache[key] = float(np.median([known[i][1] for i in same if shared[i] == most])) if same else None
        return cache[key]

    seconds = [0.0 if there else guess(one) for one, there in zip(plain, stored, strict=True)]
    return Expected(seconds, len(known))


_MOST_SIMILAR = 500


def flat(spec: Any, prefix: str = "") -> dict[str, Any]:
    """The fields of a spec by their paths: {"a": {"b": 1}} becomes {"a.b": 1}."""
    if not isinstance(spec, dict):
        return {prefix[:-1]: spec}
    return {name: value for key, part in spec.items() for name, value in flat(part, f"{prefix}{key}.").items()}
