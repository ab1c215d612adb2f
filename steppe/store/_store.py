"""A folder of runs. Each run is computed once."""

import contextlib
import functools
import importlib.metadata
import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steppe.store._files import (
    Arrays,
    Checkpoint,
    StoreError,
    disk_errors,
    read_parquet,
    sync,
    verified_about,
    write_about,
    write_parquet,
    write_safetensors,
)
from steppe.store._spec import address, canonical, dumps, is_address, plain

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Computed:
    """The outcome of a computation: columns of equal length, named arrays, and numbers or lists for JSON."""

    curves: Arrays
    params: Arrays
    result: Mapping[str, Any]


@dataclass(frozen=True)
class Entry:
    """A finished run on disk. Its files were verified when it was opened."""

    folder: Path
    about: Mapping[str, Any]

    @property
    def id(self) -> str:
        return self.folder.name

    @property
    def spec(self) -> Mapping[str, Any]:
        return self.about["spec"]

    @property
    def result(self) -> dict[str, Any]:
        return json.loads((self.folder / "result.json").read_text(encoding="utf-8"))

    @property
    def curves(self) -> "dict[str, NDArray[Any]]":
        """The columns by name. Their arrays are read-only, because the entry keeps them."""
        return dict(self._columns)

    @functools.cached_property
    def _columns(self) -> "dict[str, NDArray[Any]]":
        columns = read_parquet(self.folder / "curves.parquet")
        for column in columns.values():
            column.flags.writeable = False
        return columns

    @property
    def params(self) -> "dict[str, NDArray[Any]]":
        from safetensors.numpy import load_file

        return load_file(self.folder / "params.safetensors")


class Store:
    """`get` reads a run; `compute` reads it or computes it. The folder is `root`, else STEPPE_STORE, else runs."""

    def __init__(self, root: str | os.PathLike[str] | None = None, *, checkpoint_seconds: float = 20.0):
        self.root = Path(root or os.environ.get("STEPPE_STORE") or "runs")
        self.checkpoint_seconds = checkpoint_seconds

    def get(self, spec: Any) -> Entry | None:
        """The finished run of a spec, or None. Raises StoreError if one of its files is damaged."""
        id = address(spec)
        return self.open(id) if (self.root / id).exists() else None

    def open(self, id: str) -> Entry:
        """The finished run with this address."""
        if not self._folder(id).is_dir():
            raise StoreError(f"no run {id!r} in {self.root}. `steppe runs list` shows all runs.")
        return Entry(self._folder(id), verified_about(self._folder(id)))

    def ids(self) -> list[str]:
        """The addresses of all runs, also of damaged ones."""
        return sorted(p.name for p in self.root.glob("*") if p.is_dir() and is_address(p.name))

    def remove(self, id: str) -> None:
        """Remove a run, whole or damaged, and the checkpoint of an unfinished one."""
        with self._lock(id), disk_errors(self.root, "remove"):
            if self._folder(id).exists():
                # Renamed first, so that a reader sees the whole run or none of it.
                removed = self.root / ".work" / id / "removed"
                shutil.rmtree(removed, ignore_errors=True)
                self._folder(id).rename(removed)
                shutil.rmtree(removed)
            self._checkpoint(id).clear()

    def compute(
        self,
        spec: Any,
        work: Callable[[Checkpoint], Computed],
        *,
        recompute: bool = False,
        waiting: Callable[[], None] = lambda: None,
    ) -> Entry:
        """The run of `spec`. If it is not in the store, `work(checkpoint)` computes it, from its checkpoint on.

        If two processes ask for the same run, one of them computes it. The other one calls `waiting`, waits, and reads.
        """
        id = address(spec)
        if recompute:
            self.remove(id)
        elif (found := self.get(spec)) is not None:
            return found
        with self._lock(id, waiting):
            if (found := self.get(spec)) is not None:
                return found
            checkpoint = self._checkpoint(id)
            computed = work(checkpoint)
            with disk_errors(self.root, "write"):
                self._publish(id, spec, computed, checkpoint.seconds)
                checkpoint.clear()
        return self.open(id)

    def _publish(self, id: str, spec: Any, computed: Computed, seconds: float) -> None:
        """Write all files to a temporary folder, sync them, and rename the folder."""
        folder = self.root / ".work" / id / "finished"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            write_parquet(folder / "curves.parquet", computed.curves)
            write_safetensors(folder / "params.safetensors", computed.params)
            (folder / "result.json").write_text(dumps(plain(computed.result), indent=2) + "\n", encoding="utf-8")
            about = {
                "spec": canonical(spec),
                "versions": _versions(),
                "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
                "finished": datetime.now(UTC).isoformat(timespec="seconds"),
                "seconds": round(seconds, 3),
            }
            write_about(folder, about)
            for path in (*folder.iterdir(), folder):
                sync(path)
            folder.rename(self.root / id)
            sync(self.root)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def _folder(self, id: str) -> Path:
        if not id or id != Path(id).name or id.startswith("."):
            raise StoreError(f"{id!r} is not the name of a run. `steppe runs list` shows all runs.")
        return self.root / id

    def _checkpoint(self, id: str) -> Checkpoint:
        return Checkpoint(self.root / ".work" / id / "checkpoint.safetensors", self.checkpoint_seconds)

    @contextlib.contextmanager
    def _lock(self, id: str, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
        """One process holds the lock of a run. The system frees it if that process dies."""
        from filelock import FileLock, Timeout

        self._folder(id)
        with disk_errors(self.root, "write"):
            (self.root / ".work" / id).mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.root / ".work" / id / "lock")
            try:
                lock.acquire(timeout=0)
            except Timeout:
                waiting()
                lock.acquire(poll_interval=0.2)
        try:
            yield
        finally:
            lock.release()


def _versions() -> dict[str, str]:
    packages = ("steppe", "jax", "jaxlib", "numba", "numpy", "scipy")
    return {
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in packages},
    }
