"""Runs from one store to another, and the care of a store: checksums, and what killed processes left behind."""

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from steppe.store._files import DATA_FILES, StoreError, disk_errors, verified_about
from steppe.store._store import Entry, HeldError, Store

_FILES = (*DATA_FILES, "spec.json")
# What a process that is alive may just be writing is left alone.
_RECENT_SECONDS = 3600.0


def files_of(entry: Entry) -> dict[str, bytes]:
    """The files of a run by their names. `adopt` checks them where they arrive."""
    with disk_errors(entry.folder, "read"):
        return {name: (entry.folder / name).read_bytes() for name in _FILES}


def adopt(store: Store, id: str, files: Mapping[str, bytes], *, replace: bool = False) -> bool:
    """Take in a run of another store, whose checksums are checked first. False if this store has it already."""
    if set(files) != set(_FILES):
        raise StoreError(f"the run {id} must have the files {', '.join(_FILES)}; it came with {', '.join(files)}.")
    with store._lock(id), disk_errors(store.root, "write"):
        if not replace and (store.root / id).exists() and is_whole(store, id):
            return False
        with tempfile.TemporaryDirectory(prefix="finished-", dir=store.root / ".work" / id) as unfinished:
            folder = Path(unfinished) / id
            folder.mkdir()
            for name in _FILES:
                (folder / name).write_bytes(files[name])
            verified_about(folder)
            store._place(folder)
            store._checkpoint(id).clear()
            store._failure(id).unlink(missing_ok=True)
    return True


def is_whole(store: Store, id: str) -> bool:
    """Whether the run is there with all its files whole."""
    try:
        store.open(id)
    except StoreError:
        return False
    return True


def merge(store: Store, source: Store) -> Iterator[tuple[str, str]]:
    """Copy all runs of `source` that `store` lacks: (address, what happened): copied, there or damaged."""
    if not source.root.is_dir():
        raise StoreError(f"no store is at {source.root}. Name the folder of another store.")
    for id in source.ids():
        try:
            yield id, "copied" if adopt(store, id, files_of(source.open(id))) else "there"
        except StoreError as error:
            yield id, f"damaged: {error}"


class Garbage(NamedTuple):
    """A file or folder that no run needs, its size in bytes, and why it is not needed."""

    path: Path
    size: int
    why: str


def garbage(store: Store) -> Iterator[Garbage]:
    """What can go: unfinished folders of dead processes, checkpoints and notes of runs that are finished since."""
    now = time.time()
    for work in sorted(store.root.glob(".work/*")):
        if not work.is_dir():
            if now - work.stat().st_mtime > _RECENT_SECONDS:
                yield Garbage(work, work.stat().st_size, "a mark of a sweep that has ended")
            continue
        finished = (store.root / work.name).exists()
        for path in sorted(work.iterdir()):
            if path.name == "lock" or now - path.lstat().st_mtime < _RECENT_SECONDS:
                continue
            if path.name.startswith(("finished", "removed")) or path.suffix == ".new":
                yield Garbage(path, _size(path), "left by a process that was killed")
            elif finished:
                yield Garbage(path, _size(path), "of a run that is finished")


def collect(store: Store, found: Garbage) -> bool:
    """Remove one piece of garbage; False if its run is being computed now."""
    if found.path.parent.name == ".work":
        found.path.unlink(missing_ok=True)
        return True
    try:
        with store._lock(found.path.parent.name, None), disk_errors(store.root, "remove"):
            if found.path.is_dir() and not found.path.is_symlink():
                shutil.rmtree(found.path)
            else:
                found.path.unlink(missing_ok=True)
    except HeldError:
        return False
    return True


def _size(path: Path) -> int:
    if path.is_dir() and not path.is_symlink():
        return sum(part.lstat().st_size for part in path.rglob("*"))
    return path.lstat().st_size
