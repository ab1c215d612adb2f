"""The index of all runs: made from the folders, never trusted over them; tags, merging, garbage, exports."""

import csv
import json
import time

import numpy as np
import pytest
from cases.toy_specs import Count

from bench._mutations import mutations
from steppe.store import Store, StoreError, adopt, collect, expected_seconds, files_of, flat, garbage, merge
from steppe.store._query import export, listed, query


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "runs")
    for n in range(1, 6):
        made.compute(Count(n), Count(n).compute)
    return made


def by_hand(store):
    """The same rows from the folders alone."""
    return {id: (store.open(id).spec["n"], store.open(id).result["sum"]) for id in store.ids()}


def rows(store):
    found = listed(store)[1]
    return {r["id"]: (json.loads(r["spec"])["n"], json.loads(r["result"])["sum"]) for r in found if not r["damaged"]}


def test_it_follows_the_folders(store):
    """Added, removed, replaced and damaged runs are seen at the next look, whatever is in the index."""
    assert rows(store) == by_hand(store)
    store.compute(Count(7), Count(7).compute)
    store.remove(store.ids()[0])
    assert rows(store) == by_hand(store)
    bad = store.ids()[2]
    (store.root / bad / "result.json").write_text('{"sum": 7}')
    told = [r for r in listed(store)[1] if r["damaged"]]
    assert [r["id"] for r in told] == [bad]
    assert "result.json" in told[0]["damaged"]
    store.remove(bad)
    assert rows(store) == by_hand(store)


def test_a_damaged_or_foreign_index_is_made_anew(store):
    before = rows(store)
    (file,) = (store.root / ".index").iterdir()
    whole = file.read_bytes()
    for data in (whole[:-1], b"", whole.replace(b"Count", b"Couns"), bytes(len(whole))):
        file.write_bytes(data)
        assert rows(store) == before
    other = Store(store.root.parent / "other")
    other.compute(Count(9), Count(9).compute)
    (other.root / ".index").mkdir()
    (other.root / ".index" / file.name).write_bytes(whole)  # whole, but of another store
    assert rows(other) == by_hand(other)


def test_filters_and_aggregates(store):
    count, found = listed(store, where="(spec->>'$.n')::INT > 2", limit=2)
    assert count == 3
    assert len(found) == 2
    _, ((runs, total),) = query(store, "SELECT count(*), sum((result->>'$.sum')::DOUBLE) FROM runs")
    assert (runs, total) == (5, sum(n * (n - 1) / 2 for n in range(1, 6)))
    for sql in ("SELECT * FROM read_text('/etc/hostname')", "COPY runs TO 'x'", "LOAD httpfs", "SET threads = 1"):
        with pytest.raises(StoreError):
            query(store, sql)
    with pytest.raises(StoreError):
        listed(store, where="true); DROP TABLE indexed; --")


def test_tags(store):
    one, two, *_ = store.ids()
    store.tag("good", [one, two])
    store.tag("good", [two], remove=True)
    assert store.tags() == {"good": [one]}
    assert [r["id"] for r in listed(store, where="list_contains(tags, 'good')")[1]] == [one]
    for name in ("../x", "", ".x", "a/b"):
        with pytest.raises(StoreError):
            store.tag(name, [one])
    with pytest.raises(StoreError):
        store.tag("good", ["../../outside"])


def test_merge_takes_what_is_whole(store, tmp_path):
    other = Store(tmp_path / "other")
    for n in (5, 6, 7):
        other.compute(Count(n), Count(n).compute)
    bad = next(id for id in other.ids() if id not in store.ids())
    (other.root / bad / "curves.parquet").write_bytes(b"nothing")
    told = dict(merge(store, other))
    assert sorted(what.split(":")[0] for what in told.values()) == ["copied", "damaged", "there"]
    assert len(store.ids()) == 6
    copied = next(id for id, what in told.items() if what == "copied")
    assert files_of(store.open(copied)) == files_of(other.open(copied))


def test_adopted_runs_are_checked(store):
    id = store.ids()[0]
    files = files_of(store.open(id))
    other = Store(store.root.parent / "other")
    for name, data in (("result.json", b"{}"), ("spec.json", files["spec.json"].replace(b"Count", b"Couns"))):
        with pytest.raises(StoreError, match=name):
            adopt(other, id, files | {name: data})
    with pytest.raises(StoreError):
        adopt(other, "../outside", files)
    with pytest.raises(StoreError):
        adopt(other, id, files | {"../../x": b""})
    with pytest.raises(StoreError):  # under another run's address
        adopt(other, store.ids()[1], files)
    assert other.ids() == []
    assert adopt(other, id, files)
    assert not adopt(other, id, files)


def test_garbage_of_killed_processes(store, monkeypatch):
    id = store.ids()[0]
    left = store.root / ".work" / id / "finished-killed"
    left.mkdir()
    (left / "curves.parquet").write_bytes(bytes(1000))
    assert list(garbage(store)) == []  # perhaps somebody is writing it now
    later = time.time() + 7200
    monkeypatch.setattr("time.time", lambda: later)
    (found,) = garbage(store)
    assert (found.path, found.size) == (left, 1000)
    with store._lock(id):
        assert not collect(store, found)
    assert collect(store, found)
    assert not left.exists()
    assert len(store.ids()) == 5


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_exports_agree(store, tmp_path, ending):
    path = tmp_path / f"out.{ending}"
    assert export(store, path) == 5
    if ending == "csv":
        with path.open() as file:
            values = [float(row["value"]) for row in csv.DictReader(file)]
    elif ending == "npz":
        values = np.load(path, allow_pickle=False)["value"].tolist()
    else:
        import duckdb

        values = duckdb.read_parquet(str(path)).fetchnumpy()["value"].tolist()
    assert sorted(values) == sorted(float(k) for n in range(1, 6) for k in range(n))


def test_expected_seconds(store):
    """The median of those that share most fields, apart from the seed."""
    estimate = expected_seconds(store, [Count(3), Count(30), Count(31, pause=9.0)])
    assert estimate.seconds[0] == 0
    known = [store.open(id).about["seconds"] for id in store.ids()]
    assert estimate.seconds[1] == pytest.approx(np.median(known))
    assert estimate.similar == 5
    assert expected_seconds(Store(store.root.parent / "none"), [Count(3)]).seconds == [None]


def test_flat():
    assert flat({"a": {"b": 1, "c": [2]}, "d": 3}) == {"a.b": 1, "a.c": [2], "d": 3}


def test_mutated_files_are_refused_or_read_as_written(tmp_path):
    told, wrong = mutations(400, tmp_path, seed=5)
    assert wrong == []
    assert sum(n for what, n in told.items() if what.endswith("refused")) > 150
