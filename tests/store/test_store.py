"""The store on one process: files, addresses, damage, a full disk, queries."""

import errno
import json
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from cases.toy_specs import Count
from hypothesis import given
from hypothesis import strategies as st

from steppe.store import Computed, Store, StoreError, address, canonical
from steppe.store._files import read_parquet, write_parquet
from steppe.store._query import export, query

FILES = {"spec.json", "curves.parquet", "params.safetensors", "result.json"}


def compute(store, spec, **options):
    return store.compute(spec, spec.compute, **options)


def test_a_run_is_four_files_and_is_read_as_written(tmp_path):
    entry = compute(Store(tmp_path), Count(4))
    assert {p.name for p in entry.folder.iterdir()} == FILES
    assert entry.folder == tmp_path / address(Count(4))
    assert entry.result == {"sum": 6.0}
    np.testing.assert_array_equal(entry.curves["value"], [0, 1, 2, 3])
    np.testing.assert_array_equal(entry.params["w"], [0, 1, 2, 3])
    assert entry.spec == {"kind": "Count", "n": 4, "pause": 0.0}
    assert {"versions", "command", "seconds"} <= set(entry.about)


def test_a_run_that_exists_is_not_computed_again(tmp_path):
    store = Store(tmp_path)
    first = compute(store, Count())

    def never(checkpoint):
        raise AssertionError

    assert store.compute(Count(), never).about == first.about
    assert store.get(Count()).about == first.about
    assert store.get(Count(99)) is None


def test_an_entry_reads_its_curves_once(tmp_path, monkeypatch):
    entry = compute(Store(tmp_path), Count(4))
    first = entry.curves
    monkeypatch.setattr("steppe.store._store.read_parquet", lambda path: pytest.fail("read again"))
    assert entry.curves["value"] is first["value"]
    first["more"] = first.pop("value")  # a caller's own dictionary
    assert set(entry.curves) == {"step", "value"}
    with pytest.raises(ValueError, match="read-only"):
        entry.curves["value"][0] = 1.0
    assert entry == Store(tmp_path).get(Count(4))


def test_recompute(tmp_path):
    store = Store(tmp_path)
    compute(store, Count())
    calls = []

    def work(checkpoint):
        calls.append(1)
        return Count().compute(checkpoint)

    store.compute(Count(), work, recompute=True)
    assert calls == [1]


@given(st.integers(-5, 5), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=5))
def test_addresses_are_equal_for_equal_specs_only(n, x, s):
    @dataclass(frozen=True)
    class Spec:
        n: int
        x: float
        s: str
        rows: tuple[int, ...] = field(default=(1, 2))

    assert address(Spec(n, x, s)) == address(Spec(n, x, s))
    assert address(Spec(n, x, s)) != address(Spec(n + 1, x, s))
    assert json.loads(json.dumps(canonical(Spec(n, x, s)))) == canonical(Spec(n, x, s))


def test_a_spec_is_a_dataclass():
    with pytest.raises(StoreError, match="frozen dataclass"):
        address({"n": 1})


@pytest.mark.parametrize("name", sorted(FILES))
@pytest.mark.parametrize("damage", ["truncate", "flip", "remove", "empty"])
def test_damage_is_found_and_named_and_recompute_repairs_it(tmp_path, name, damage):
    store = Store(tmp_path)
    path = compute(store, Count()).folder / name
    blob = path.read_bytes()
    if damage == "truncate":
        path.write_bytes(blob[: len(blob) // 2])
    elif damage == "flip":
        path.write_bytes(blob[:10] + bytes([blob[10] ^ 1]) + blob[11:])
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()
    with pytest.raises(StoreError, match=f"{name} is missing or damaged.*--recompute"):
        compute(store, Count())
    assert compute(store, Count(), recompute=True).result == {"sum": 10.0}


def test_after_a_damaged_checkpoint_the_run_starts_again(tmp_path):
    store = Store(tmp_path, checkpoint_seconds=0.0)
    checkpoint = store._checkpoint(address(Count()))
    checkpoint.path.parent.mkdir(parents=True)
    checkpoint.save({"done": np.array([0.0, 1.0])})
    blob = checkpoint.path.read_bytes()
    assert checkpoint.load()["done"].tolist() == [0.0, 1.0]
    checkpoint.path.write_bytes(blob[:-3])
    assert checkpoint.load() is None
    assert compute(store, Count()).result == {"sum": 10.0}


def test_a_failing_computation_leaves_nothing(tmp_path):
    def broken(checkpoint):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Store(tmp_path).compute(Count(), broken)
    assert Store(tmp_path).ids() == []
    assert compute(Store(tmp_path), Count()).result == {"sum": 10.0}


@pytest.mark.parametrize("where", ["write_parquet", "write_safetensors", "write_about", "sync"])
def test_a_full_disk_is_reported_and_leaves_no_half_written_run(tmp_path, monkeypatch, where):
    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "somewhere")

    monkeypatch.setattr(f"steppe.store._store.{where}", full)
    with pytest.raises(StoreError, match=r"cannot write in the store .*No space left.*--store"):
        compute(Store(tmp_path), Count())
    assert Store(tmp_path).ids() == []
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and p.name != "lock"]
    monkeypatch.undo()
    assert compute(Store(tmp_path), Count()).result == {"sum": 10.0}


def test_a_device_without_space(tmp_path):
    """/dev/full refuses every byte: the checkpoint is written to it through a link."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    store = Store(tmp_path)
    checkpoint = store._checkpoint("x")
    checkpoint.path.parent.mkdir(parents=True)
    checkpoint.path.with_suffix(".new").symlink_to("/dev/full")
    with pytest.raises(StoreError, match="No space left"):
        checkpoint.save({"a": np.zeros(10_000)})
    assert not checkpoint.path.exists()


@pytest.mark.parametrize("root", ["/proc/steppe", "file/inside"])
def test_a_folder_that_cannot_be_written(tmp_path, root):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreError, match="cannot write in the store"):
        compute(Store(tmp_path / root), Count())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with pytest.raises(StoreError, match="Permission denied"):
            compute(Store(tmp_path), Count())
    finally:
        tmp_path.chmod(stat.S_IRWXU)


def test_numbers_that_are_not_finite_become_null(tmp_path):
    computed = Computed({"step": np.arange(1)}, {}, {"a": float("nan"), "b": [np.inf, np.float32(1.5)]})
    assert Store(tmp_path).compute(Count(), lambda c: computed).result == {"a": None, "b": [None, 1.5]}


def test_columns_of_vectors(tmp_path):
    computed = Computed({"step": np.arange(3), "w": np.arange(6.0).reshape(3, 2)}, {}, {})
    curves = Store(tmp_path).compute(Count(), lambda c: computed).curves
    np.testing.assert_array_equal(curves["w[1]"], [1, 3, 5])


def test_remove_and_names(tmp_path):
    store = Store(tmp_path)
    compute(store, Count())
    store.remove(address(Count()))
    assert store.ids() == []
    for name in ("../x", "", ".work", "a/b"):
        with pytest.raises(StoreError, match="not the name of a run"):
            store.open(name)
    with pytest.raises(StoreError, match="no run 'abc'"):
        store.open("abc")


def test_default_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("STEPPE_STORE", raising=False)
    assert Store().root == Path("runs")
    monkeypatch.setenv("STEPPE_STORE", str(tmp_path))
    assert Store().root == tmp_path
    assert Store("elsewhere").root == Path("elsewhere")


def test_sql(tmp_path):
    store = Store(tmp_path)
    for n in (3, 5):
        compute(store, Count(n))
    columns, rows = query(store, "SELECT run, max(value) AS top FROM curves GROUP BY run ORDER BY top")
    assert columns == ["run", "top"]
    assert rows == [(address(Count(3)), 2.0), (address(Count(5)), 4.0)]
    _, rows = query(store, "SELECT CAST(spec->>'n' AS INT) FROM runs ORDER BY 1")
    assert rows == [(3,), (5,)]
    with pytest.raises(StoreError, match="cannot run this query"):
        query(store, "SELEC nothing")
    with pytest.raises(StoreError, match="cannot run this query"):
        query(store, f"COPY curves TO '{tmp_path}/stolen.csv'")
    assert export(store, tmp_path / "out" / "all.csv") == 2
    lines = (tmp_path / "out" / "all.csv").read_text().splitlines()
    assert lines[0] == "run,step,value"
    assert len(lines) == 1 + 3 + 5
    with pytest.raises(StoreError, match="no runs"):
        query(Store(tmp_path / "empty"), "SELECT 1")


def test_nan_and_infinity_are_read_as_written(tmp_path):
    """DuckDB masks NaN. Read without care it is 0, and a run that never converged looks perfect."""
    columns = {"loss": np.array([1.0, np.nan, np.inf, -np.inf]), "step": np.arange(4)}
    write_parquet(tmp_path / "c.parquet", columns)
    found = read_parquet(tmp_path / "c.parquet")
    for name, column in columns.items():
        assert not np.ma.isMaskedArray(found[name])
        np.testing.assert_array_equal(found[name], column)
