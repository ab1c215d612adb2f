"""A folder of runs. Each run is computed once."""

import contextlib
import functools
import importlib.metadata
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steppe.store._checkpoint import Checkpoint
from steppe.store._files import (
    Arrays,
    StoreError,
    disk_errors,
    read_parquet,
    read_verified,
    sync,
    verified_about,
    write_about,
    write_parquet,
    write_safetensors,
)
from steppe.store._spec import address, canonical, dumps, is_address, plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

# While a run is replaced, its old folder is here: a folder of its own, so that to look for one never takes long.
_REPLACED = ".replaced"
# Why runs failed the last time.
_FAILED = ".failed"
# Unfinished folders in `.work` begin with this.
_FINISHED = "finished-"
_LONGEST_NOTE = 1 << 20
# A process that waits for a run of another one looks this often.
_HELD_SECONDS = 0.2


class HeldError(RuntimeError):
    """Another process holds the lock of a run: it computes, replaces or removes it."""


@dataclass(frozen=True)
class Computed:
    """The outcome of a computation: columns of equal length, named arrays, and numbers or lists for JSON."""

    curves: Arrays
    params: Arrays
    result: Mapping[str, Any]


@dataclass(frozen=True)
class Entry:
    """A finished run on disk. Its files are verified when it is opened, and again when they are read."""

    folder: Path
    about: Mapping[str, Any]

    @property
    def id(self) -> str:
        return self.folder.name

    @property
    def spec(self) -> Mapping[str, Any]:
        return self.about["spec"]

    @property
    def version(self) -> str:
        """The version of steppe that computed the run."""
        return self.about["versions"]["steppe"]

    @property
    def result(self) -> dict[str, Any]:
        return self._read("result.json", lambda path: json.loads(path.read_text(encoding="utf-8")))

    @property
    def curves(self) -> "dict[str, NDArray[Any]]":
        """The columns by name. Their arrays are read-only, because the entry keeps them."""
        return dict(self._columns)

    @functools.cached_property
    def _columns(self) -> "dict[str, NDArray[Any]]":
        columns = self._read("curves.parquet", read_parquet)
        for column in columns.values():
            column.flags.writeable = False
        return columns

    @property
    def params(self) -> "dict[str, NDArray[Any]]":
        from safetensors.numpy import load_file

        return self._read("params.safetensors", load_file)

    def _read(self, name: str, read: Callable[[Path], Any]) -> Any:
        return read_verified(self.folder / name, self.about["files"][name], read)


class Store:
    """`get` reads a run; `compute` reads it or computes it. The folder is `root`, else STEPPE_STORE, else runs."""

    def __init__(self, root: str | os.PathLike[str] | None = None, *, checkpoint_seconds: float = 20.0):
        if not (root is None or isinstance(root, str | os.PathLike)):
            raise StoreError(f"root must be the path of a folder or None; got {root!r}. Pass for example 'runs'.")
        seconds = checkpoint_seconds if isinstance(checkpoint_seconds, int | float) else -1.0
        if not seconds >= 0:
            remedy = "Pass for example 20.0."
            raise StoreError(f"checkpoint_seconds must be a number ≥ 0; got {checkpoint_seconds!r}. {remedy}")
        self.root = Path(root or os.environ.get("STEPPE_STORE") or "runs")
        try:
            os.fsencode(self.root)
        except UnicodeEncodeError:
            raise StoreError(
                f"{str(self.root)!r} cannot be the name of a folder. Pass one without surrogates."
            ) from None
        self.checkpoint_seconds = checkpoint_seconds

    def get(self, spec: Any) -> Entry | None:
        """The finished run of a spec, or None. Raises StoreError if one of its files is damaged.

        A run of another version of steppe is returned only if SAME_RESULTS of the spec's class lists that version.
        """
        entry = self._find(address(spec))
        return entry if entry is not None and _is_usable(entry, spec) else None

    def of_another_version(self, spec: Any) -> str | None:
        """The version of steppe of a stored run that is not used for this reason, or None."""
        entry = self._find(address(spec))
        return None if entry is None or _is_usable(entry, spec) else entry.version

    def open(self, id: str) -> Entry:
        """The finished run with this address, of any version of steppe."""
        entry = self._find(id)
        if entry is None:
            raise StoreError(f"no run {id!r} in {self.root}. `steppe runs list` shows all runs.")
        return entry

    def ids(self) -> list[str]:
        """The addresses of all runs, also of damaged ones."""
        names = [*_names(self.root / _REPLACED), *_names(self.root)]
        return sorted({name for name in names if is_address(name)})

    def remove(self, id: str) -> None:
        """Remove a run, whole or damaged, and the checkpoint of an unfinished one."""
        with self._lock(id), disk_errors(self.root, "remove"):
            if os.path.lexists(self._folder(id)):
                # Renamed first, so that a reader sees the whole run or none of it.
                removed = self.root / ".work" / id / "removed"
                _delete(removed)
                self._folder(id).rename(removed)
                _delete(removed)
            self._checkpoint(id).clear()

    def note_failure(self, id: str, why: str) -> None:
        """Remember why a run failed, until it is computed."""
        note = {"why": why, "when": datetime.now(UTC).isoformat(timespec="seconds"), **_provenance()}
        with disk_errors(self.root, "write"):
            (self.root / _FAILED).mkdir(parents=True, exist_ok=True)
            fresh = self.root / _FAILED / f"{id}.{os.getpid()}"
            fresh.write_text(dumps(note) + "\n", encoding="utf-8")
            fresh.replace(self._failure(id))

    def failures(self) -> dict[str, str]:
        """Why runs failed the last time, by their addresses; without those that were computed since."""
        found = {}
        for path in sorted(self.root.glob(f"{_FAILED}/*.json")):
            if path.is_file() and path.stat().st_size < _LONGEST_NOTE:
                try:
                    found[path.stem] = str(json.loads(path.read_bytes())["why"])
                except (OSError, ValueError, KeyError, TypeError, RecursionError):
                    found[path.stem] = "the note of the failure is damaged"
        return found

    def tag(self, tag: str, ids: Iterable[str], *, remove: bool = False) -> None:
        """Give runs a tag, or take it from them. A tag is an empty file, so that two processes never lose one."""
        if not tag or len(tag) > 100 or not all(c.isalnum() or c in "-_." for c in tag) or tag.startswith("."):
            raise StoreError(f"{tag!r} is not a tag. Use letters, digits, and - _ . between them.")
        folder = self.root / ".tags" / tag
        for id in ids:
            self._folder(id)
            with disk_errors(self.root, "write"):
                if remove:
                    (folder / id).unlink(missing_ok=True)
                else:
                    folder.mkdir(parents=True, exist_ok=True)
                    (folder / id).touch()

    def tags(self) -> dict[str, list[str]]:
        """The runs that have each tag."""
        found = {folder.name: sorted(p.name for p in folder.iterdir()) for folder in self.root.glob(".tags/*")}
        return {tag: ids for tag, ids in sorted(found.items()) if ids}

    def _failure(self, id: str) -> Path:
        return self.root / _FAILED / f"{id}.json"

    def _find(self, id: str) -> Entry | None:
        folder, seen = self._folder(id), None
        while True:
            if not os.path.lexists(folder):
                if not (self.root / _REPLACED / id).exists():
                    return None
                with self._lock(id):  # waits for the replacement, or undoes one that was killed
                    pass
            try:
                return Entry(folder, verified_about(folder))
            except StoreError:
                # The run may have been replaced while it was read. If not, it is damaged.
                if (now := _identity(folder)) is not None and now == seen:
                    raise
                seen = now

    def compute(
        self,
        spec: Any,
        work: Callable[[Checkpoint], Computed],
        *,
        recompute: bool = False,
        waiting: Callable[[], None] | None = lambda: None,
    ) -> Entry:
        """The run of `spec`. If it is not in the store, `work(checkpoint)` computes it, from its checkpoint on.

        With `recompute` it is computed in any case; the run in the store stays until the new one replaces it.
        If two processes ask for the same run, one of them computes it. The other one calls `waiting` now and then,
        waits, and reads; if `waiting` is None it does not wait, but raises HeldError.
        """
        id = address(spec)
        if not recompute and (found := self.get(spec)) is not None:
            return found
        with self._lock(id, waiting):
            if not recompute and (found := self.get(spec)) is not None:
                return found
            checkpoint = self._checkpoint(id, recompute="yes") if recompute else self._checkpoint(id)
            computed = work(checkpoint)
            with disk_errors(self.root, "write"):
                self._publish(id, spec, computed, checkpoint.seconds, recompute=recompute)
                checkpoint.clear()
                self._failure(id).unlink(missing_ok=True)
        return self.open(id)

    def _publish(self, id: str, spec: Any, computed: Computed, seconds: float, *, recompute: bool) -> None:
        """Write all files to a temporary folder, sync them, and rename the folder."""
        work = self.root / ".work" / id
        for killed in work.glob(f"{_FINISHED}*"):
            _delete(killed)
        # Of this process alone: should the locks of a shared folder fail, two processes still write two folders.
        unfinished = Path(tempfile.mkdtemp(prefix=_FINISHED, dir=work))
        folder = unfinished / id
        try:
            folder.mkdir()
            write_parquet(folder / "curves.parquet", computed.curves)
            write_safetensors(folder / "params.safetensors", computed.params)
            (folder / "result.json").write_text(dumps(plain(computed.result), indent=2) + "\n", encoding="utf-8")
            about = {
                "spec": canonical(spec),
                **_provenance(),
                "finished": datetime.now(UTC).isoformat(timespec="seconds"),
                "seconds": round(seconds, 3),
            }
            write_about(folder, about)
            # Another process may have been first, in spite of the lock.
            if recompute or not os.path.lexists(self.root / id) or self.get(spec) is None:
                self._place(folder)
        finally:
            with contextlib.suppress(OSError):
                self._undo_replacement(id)
                _delete(unfinished)

    def _place(self, folder: Path) -> None:
        """Give a finished folder its place; the run that has it is gone."""
        sync([*folder.iterdir(), folder])
        place, replaced = self.root / folder.name, self.root / _REPLACED / folder.name
        if os.path.lexists(place):
            replaced.parent.mkdir(exist_ok=True)
            place.rename(replaced)
        folder.rename(place)
        _delete(replaced)

    def _undo_replacement(self, id: str) -> None:
        """After a kill or an error between the two renames of a replacement, the old run gets its name back."""
        replaced = self.root / _REPLACED / id
        if os.path.lexists(replaced):
            if os.path.lexists(self.root / id):
                _delete(replaced)
            else:
                replaced.rename(self.root / id)

    def _folder(self, id: str) -> Path:
        if not id or id != Path(id).name or id.startswith("."):
            raise StoreError(f"{id!r} is not the name of a run. `steppe runs list` shows all runs.")
        return self.root / id

    def _checkpoint(self, id: str, **more: str) -> Checkpoint:
        path = self.root / ".work" / id / "checkpoint.safetensors"
        return Checkpoint(path, self.checkpoint_seconds, {"run": id, "steppe": _version(), **more})

    @contextlib.contextmanager
    def _lock(self, id: str, waiting: Callable[[], None] | None = lambda: None) -> Iterator[None]:
        """One process holds the lock of a run. The system frees it if that process dies."""
        from filelock import FileLock, Timeout

        self._folder(id)
        with disk_errors(self.root, "write"):
            (self.root / ".work" / id).mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.root / ".work" / id / "lock")
            while not lock.is_locked:
                try:
                    lock.acquire(timeout=0)
                except Timeout:
                    if waiting is None:
                        raise HeldError(f"another process computes the run {id}") from None
                    waiting()
                    time.sleep(_HELD_SECONDS)
        try:
            self._undo_replacement(id)
            yield
        finally:
            lock.release()


def _is_usable(entry: Entry, spec: Any) -> bool:
    return entry.version in {_version(), *getattr(spec, "SAME_RESULTS", ())}


def _identity(folder: Path) -> tuple[int, ...] | None:
    """Differs between a folder and the one that replaces it."""
    try:
        found = folder.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns


def _names(folder: Path) -> list[str]:
    """What is in a folder; nothing if it is not there."""
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _delete(path: Path) -> None:
    """Remove a folder with its contents, a file or a link."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _version() -> str:
    from steppe import __version__

    return __version__


@functools.cache
def _package_versions() -> dict[str, str]:
    packages = ("jax", "jaxlib", "numba", "numpy", "scipy")
    return {name: importlib.metadata.version(name) for name in packages}


def _provenance() -> dict[str, Any]:
    """Which software on which machine computed something, and the command."""
    return {
        "versions": {"python": platform.python_version(), "steppe": _version(), **_package_versions()},
        "platform": platform.platform(),
        "commit": _commit(),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


@functools.cache
def _commit() -> str | None:
    """The commit of the checkout that this package is in; None for an installed package."""
    git = Path(__file__).parents[2] / ".git"
    if git.is_file():  # of a worktree
        git = Path(git.read_text(encoding="utf-8").removeprefix("gitdir:").strip())
    try:
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        reference = head.removeprefix("ref: ")
        common = git / "commondir"
        shared = (git / common.read_text(encoding="utf-8").strip()) if common.is_file() else git
        places = [place / reference for place in (git, shared) if (place / reference).is_file()]
        if head == reference or places:
            return head if head == reference else places[0].read_text(encoding="utf-8").strip()
        packed = (shared / "packed-refs").read_text(encoding="utf-8").splitlines()
        return next((line.split()[0] for line in packed if line.endswith(f" {reference}")), None)
    except OSError:
        return None
