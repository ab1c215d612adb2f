"""A folder of runs, each computed once."""

import contextlib
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
from typing import Any

from numpy.typing import NDArray

from steppe.store._files import (
    Arrays,
    Checkpoint,
    StoreError,
    read_parquet,
    sync,
    told,
    verified_about,
    write_about,
    write_parquet,
    write_safetensors,
)
from steppe.store._spec import address, canonical, dumps, is_address, plain


@dataclass(frozen=True)
class Computed:
    """What a computation hands to the store: columns of equal length, named arrays, and plain JSON numbers."""

    curves: Arrays
    params: Arrays
    result: Mapping[str, Any]


@dataclass(frozen=True)
class Entry:
    """A finished run on disk, verified when it was opened."""

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
    def curves(self) -> dict[str, NDArray[Any]]:
        return read_parquet(self.folder / "curves.parquet")

    @property
    def params(self) -> dict[str, NDArray[Any]]:
        from safetensors.numpy import load_file

        return load_file(self.folder / "params.safetensors")


class Store:
    """`get` reads a run, `compute` makes it unless it is there. The folder: `root`, STEPPE_STORE, or runs."""

    def __init__(self, root: str | os.PathLike[str] | None = None, *, checkpoint_seconds: float = 20.0):
        self.root = Path(root or os.environ.get("STEPPE_STORE") or "runs")
        self.checkpoint_seconds = checkpoint_seconds

    def get(self, spec: Any) -> Entry | None:
        """The finished run of a spec, or None. A damaged one is a StoreError that names the file."""
        id = address(spec)
        return self.open(id) if (self.root / id).exists() else None

    def open(self, id: str) -> Entry:
        if not self._folder(id).is_dir():
            raise StoreError(f"no run {id!r} in {self.root}. `steppe runs list` shows the runs there are.")
        return Entry(self._folder(id), verified_about(self._folder(id)))

    def ids(self) -> list[str]:
        """The names of the runs there are, damaged ones included."""
        return sorted(p.name for p in self.root.glob("*") if p.is_dir() and is_address(p.name))

    def remove(self, id: str) -> None:
        """Drop a run, whole or damaged, and what is left of an unfinished one."""
        with self._lock(id), told(self.root, "remove"):
            if self._folder(id).exists():
                # Renamed first: a reader sees the run whole or not at all.
                doomed = self.root / ".work" / id / "removed"
                shutil.rmtree(doomed, ignore_errors=True)
                self._folder(id).rename(doomed)
                shutil.rmtree(doomed)
            self._checkpoint(id).clear()

    def compute(
        self,
        spec: Any,
        work: Callable[[Checkpoint], Computed],
        *,
        recompute: bool = False,
        waiting: Callable[[], None] = lambda: None,
    ) -> Entry:
        """The run of `spec`: read if it exists, else `work(checkpoint)` computes it, going on from its checkpoint.

        Of two processes that ask for one run, one computes; `waiting` is called in the other, which then reads.
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
            with told(self.root, "write"):
                self._publish(id, spec, computed, checkpoint.seconds)
                checkpoint.clear()
        return self.open(id)

    def _publish(self, id: str, spec: Any, computed: Computed, seconds: float) -> None:
        """All files into a folder of their own, synced, then renamed in one move."""
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
            raise StoreError(f"{id!r} is not the name of a run. `steppe runs list` shows the runs there are.")
        return self.root / id

    def _checkpoint(self, id: str) -> Checkpoint:
        return Checkpoint(self.root / ".work" / id / "checkpoint.safetensors", self.checkpoint_seconds)

    @contextlib.contextmanager
    def _lock(self, id: str, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Held by one process; the system frees it when that process dies."""
        from filelock import FileLock, Timeout

        self._folder(id)
        with told(self.root, "write"):
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
