"""A run is used only as what it is: its spec, its version, its bytes; a checkpoint belongs to one run."""

import json
import os
import shutil
import threading

import numpy as np
import pytest
from cases.toy_specs import Count

import steppe
from steppe.store import Computed, Store, StoreError, address
from steppe.store._files import seal
from steppe.store._spec import dumps


def compute(store, spec, **options):
    return store.compute(spec, spec.compute, **options)


def rewrite_spec(folder, **changes):
    """Change spec.json and seal it, as a forger or another version of steppe would have written it."""
    about = json.loads((folder / "spec.json").read_text())
    del about["seal"]
    about |= changes
    (folder / "spec.json").write_text(dumps(about | {"seal": seal(about)}))


def of_version(folder, version):
    about = json.loads((folder / "spec.json").read_text())
    rewrite_spec(folder, versions=about["versions"] | {"steppe": version})


def test_a_run_under_another_runs_name_is_refused(tmp_path):
    store = Store(tmp_path)
    folder = compute(store, Count(4)).folder
    folder.rename(tmp_path / address(Count(5)))
    for use in (lambda: store.get(Count(5)), lambda: compute(store, Count(5)), lambda: store.open(address(Count(5)))):
        with pytest.raises(StoreError, match=rf"holds the run {address(Count(4))}: .* renamed or copied"):
            use()
    assert compute(store, Count(5), recompute=True).result == {"sum": 10.0}


def test_a_changed_spec_is_refused(tmp_path):
    store = Store(tmp_path)
    folder = compute(store, Count(4)).folder
    rewrite_spec(folder, spec={"kind": "Count", "n": 5, "pause": 0.0})
    with pytest.raises(StoreError, match="renamed or copied"):
        store.get(Count(4))


class Kept(Count):
    SAME_RESULTS = ("0.0.9",)


@pytest.mark.parametrize(
    ("kind", "version", "usable"),
    [(Count, steppe.__version__, True), (Count, "0.0.9", False), (Kept, "0.0.9", True), (Kept, "0.0.8", False)],
)
def test_a_run_of_another_version_needs_a_declaration(tmp_path, kind, version, usable):
    store, spec = Store(tmp_path), kind(4)
    of_version(compute(store, spec).folder, version)
    assert (store.get(spec) is not None) == usable
    assert store.open(address(spec)).version == version  # `steppe runs` still shows it
    assert compute(store, spec).version == (version if usable else steppe.__version__)


def saved_checkpoint(store, spec, **more):
    checkpoint = store._checkpoint(address(spec), **more)
    checkpoint.path.parent.mkdir(parents=True)
    checkpoint.save({"done": np.array([7.0, 7.0])})
    return checkpoint


def test_a_checkpoint_of_another_run_is_ignored(tmp_path):
    store = Store(tmp_path)
    other, own = saved_checkpoint(store, Count(4)), store._checkpoint(address(Count(5)))
    own.path.parent.mkdir(parents=True)
    shutil.copy(other.path, own.path)
    assert own.load() is None
    assert own.ignored == (
        f"its checkpoint is of run {address(Count(4))}, steppe {steppe.__version__}; the run begins anew"
    )
    assert compute(store, Count(5)).result == {"sum": 10.0}


def test_a_checkpoint_of_another_version_is_ignored(tmp_path, monkeypatch):
    store = Store(tmp_path)
    saved_checkpoint(store, Count(4))
    monkeypatch.setattr("steppe.__version__", "0.0.9")
    checkpoint = store._checkpoint(address(Count(4)))
    assert checkpoint.load() is None
    assert "steppe " in checkpoint.ignored


def test_recompute_begins_anew_and_goes_on_from_its_own_checkpoint_only(tmp_path):
    store = Store(tmp_path)
    saved_checkpoint(store, Count(4))
    assert compute(store, Count(4), recompute=True).result == {"sum": 6.0}
    store.remove(address(Count(4)))
    (tmp_path / ".work" / address(Count(4)) / "lock").unlink()
    (tmp_path / ".work" / address(Count(4))).rmdir()
    saved_checkpoint(store, Count(4), recompute="yes")
    assert compute(store, Count(4), recompute=True).result == {"sum": 7.0 + 7.0 + 2 + 3}


def test_recompute_keeps_the_old_run_until_it_has_the_new_one(tmp_path):
    store = Store(tmp_path)
    old = compute(store, Count(4))

    def failing(checkpoint):
        assert store.get(Count(4)) == old
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.compute(Count(4), failing, recompute=True)
    assert store.get(Count(4)) == old


@pytest.mark.parametrize("step", ["old moved away", "new in place"])
def test_a_replacement_that_was_killed(tmp_path, step):
    store = Store(tmp_path)
    old = compute(store, Count(4))
    replaced = tmp_path / ".replaced" / address(Count(4))
    replaced.parent.mkdir(exist_ok=True)
    if step == "old moved away":
        old.folder.rename(replaced)
    else:
        shutil.copytree(old.folder, replaced)
    assert store.ids() == [address(Count(4))]
    assert store.get(Count(4)) == old
    compute(store, Count(4), recompute=True)
    assert not replaced.exists()


def test_readers_beside_a_recomputation(tmp_path):
    """Each reads a whole run, the old one or the new one, which here differ in every file."""
    store, n = Store(tmp_path), 4

    def filled(value):
        column = np.full(2000, value)
        return lambda checkpoint: Computed({"step": np.arange(2000), "value": column}, {"w": column}, {"sum": value})

    store.compute(Count(n), filled(0.0))
    done = threading.Event()

    def replace():
        for k in range(20):
            store.compute(Count(n), filled(float(k)), recompute=True)
        done.set()

    writer = threading.Thread(target=replace)
    writer.start()
    reads, changed = 0, 0
    while not done.is_set():
        entry = Store(tmp_path).get(Count(n))
        assert entry is not None
        try:
            assert set(entry.curves["value"]) == {entry.result["sum"]} == set(entry.params["w"])
        except StoreError:  # replaced between opening and reading: said, and never mixed
            changed += 1
        reads += 1
    writer.join()
    assert reads > changed


@pytest.mark.parametrize("name", ["result.json", "curves.parquet", "params.safetensors"])
def test_an_entry_that_changes_after_it_was_opened(tmp_path, name):
    store = Store(tmp_path)
    entry, other = compute(store, Count(4)), compute(store, Count(5))
    shutil.copy(other.folder / name, entry.folder / name)
    reads = {
        "result.json": lambda: entry.result,
        "curves.parquet": lambda: entry.curves,
        "params.safetensors": lambda: entry.params,
    }
    with pytest.raises(StoreError, match=f"{name} is missing or damaged, or has changed"):
        reads[name]()


HOSTILE = {
    "deep": lambda path: path.write_text("[" * 100_000),
    "deep object": lambda path: path.write_text('{"a":' * 50_000),
    "fifo": os.mkfifo,
    "folder": os.mkdir,
    "loop": lambda path: path.symlink_to(path),
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "sparse": lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 1 << 40),
    "number": lambda path: path.write_text("3"),
    "bytes": lambda path: path.write_bytes(b"\xff\xfe"),
}


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("where", ["spec.json", "."])
def test_one_bad_run_does_not_break_the_others(tmp_path, hostile, where):
    store = Store(tmp_path)
    whole = compute(store, Count(4))
    bad = tmp_path / address(Count(5))
    if where == ".":
        HOSTILE[hostile](bad)
    else:
        bad.mkdir()
        HOSTILE[hostile](bad / where)
    assert store.ids() == sorted([whole.id, bad.name])
    for use in (store.get, lambda spec: compute(store, spec)):
        with pytest.raises(StoreError, match="is missing or damaged"):
            use(Count(5))
    if where == ".":
        store.remove(bad.name)
        assert store.ids() == [whole.id]
    else:
        assert compute(store, Count(5), recompute=True).result == {"sum": 10.0}


def test_a_linked_run_is_read_and_removed_as_a_link(tmp_path):
    store, elsewhere = Store(tmp_path / "runs"), Store(tmp_path / "elsewhere")
    entry = compute(elsewhere, Count(4))
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / entry.id).symlink_to(entry.folder)
    assert store.ids() == [entry.id]
    assert store.get(Count(4)).result == entry.result
    store.remove(entry.id)
    assert store.ids() == []
    assert elsewhere.get(Count(4)).result == entry.result
