"""Runs on disk: spec → hash → folder. Knows no science.

    runs/<hash of the spec>/spec.json  curves.parquet  params.safetensors  result.json
    runs/.work/<hash>/                 what a run under way writes: its lock, checkpoint and unfinished folder

A folder that exists is whole: it is written in `.work`, synced and renamed. Each file's sha256 is in spec.json, and
spec.json carries its own, so that a damaged file is found and named.
"""

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]
_FILES = ("curves.parquet", "params.safetensors", "result.json")


class StoreError(RuntimeError):
    """The store cannot be read or written; the message says which file and what to do."""


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
        return self.about["spec"]  # type: ignore[no-any-return]

    @property
    def result(self) -> dict[str, Any]:
        return json.loads((self.folder / "result.json").read_text())  # type: ignore[no-any-return]

    @property
    def curves(self) -> dict[str, NDArray[Any]]:
        import duckdb

        with duckdb.connect() as db:
            return dict(db.read_parquet(str(self.folder / "curves.parquet")).fetchnumpy())

    @property
    def params(self) -> dict[str, NDArray[Any]]:
        from safetensors.numpy import load_file

        return load_file(self.folder / "params.safetensors")


def canonical(spec: Any) -> dict[str, Any]:
    """A frozen dataclass as plain JSON, with the name of its class, the same for equal specs."""
    kind = {"kind": getattr(type(spec), "KIND", type(spec).__qualname__)}
    return kind | json.loads(json.dumps(dataclasses.asdict(spec), allow_nan=False))  # type: ignore[no-any-return]


def address(spec: Any) -> str:
    """The folder name of a spec: the first 20 hex digits of the sha256 of its canonical JSON."""
    return hashlib.sha256(_dumps(canonical(spec)).encode()).hexdigest()[:20]


class Store:
    """A folder of runs. `get` reads one, `compute` makes it unless it is there."""

    def __init__(self, root: str | os.PathLike[str] | None = None, *, checkpoint_seconds: float = 20.0):
        self.root = Path(root or os.environ.get("STEPPE_STORE") or "runs")
        self.checkpoint_seconds = checkpoint_seconds

    def get(self, spec: Any) -> Entry | None:
        """The finished run of a spec, or None. A damaged one is a StoreError that names the file."""
        folder = self.root / address(spec)
        return self.open(folder.name) if folder.exists() else None

    def open(self, id: str) -> Entry:
        folder = self.root / id
        if not folder.is_dir():
            raise StoreError(f"no run {id!r} in {self.root}. `steppe runs list` shows the runs there are.")
        return Entry(folder, _verified(folder))

    def ids(self) -> list[str]:
        return sorted(p.parent.name for p in self.root.glob("*/spec.json") if not p.parent.name.startswith("."))

    def remove(self, id: str) -> None:
        with self._lock(id), _told(self.root, "remove"):
            shutil.rmtree(self.root / id, ignore_errors=not (self.root / id).exists())
            self._checkpoint(id).clear()

    def compute(
        self,
        spec: Any,
        work: Callable[["Checkpoint"], Computed],
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
            checkpoint, started = self._checkpoint(id), time.time()
            with _told(self.root, "write"):
                computed = work(checkpoint)
                self._publish(id, spec, computed, time.time() - started + checkpoint.seconds_before)
                checkpoint.clear()
        return self.open(id)

    def _publish(self, id: str, spec: Any, computed: Computed, seconds: float) -> None:
        folder = self.root / ".work" / id / "finished"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            _write_parquet(folder / "curves.parquet", computed.curves)
            _write_safetensors(folder / "params.safetensors", computed.params)
            (folder / "result.json").write_text(_dumps(computed.result, indent=2) + "\n")
            about = {
                "spec": canonical(spec),
                "files": {name: _sha256(folder / name) for name in _FILES},
                "versions": _versions(),
                "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
                "finished": datetime.now(UTC).isoformat(timespec="seconds"),
                "seconds": round(seconds, 3),
            }
            (folder / "spec.json").write_text(_dumps(about | {"seal": _seal(about)}, indent=2) + "\n")
            for path in (*folder.iterdir(), folder):
                _sync(path)
            folder.rename(self.root / id)
            _sync(self.root)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def _checkpoint(self, id: str) -> "Checkpoint":
        return Checkpoint(self.root / ".work" / id / "checkpoint.safetensors", self.checkpoint_seconds)

    @contextlib.contextmanager
    def _lock(self, id: str, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Held by one process; the system frees it when that process dies."""
        from filelock import FileLock, Timeout

        with _told(self.root, "write"):
            (self.root / ".work" / id).mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.root / ".work" / id / "lock")
            try:
                lock.acquire(timeout=0)
            except Timeout:
                waiting()
                lock.acquire()
        try:
            yield
        finally:
            lock.release()


class Checkpoint:
    """Where a run under way stands: arrays, replaced as a whole or not at all."""

    def __init__(self, path: Path, every_seconds: float):
        self.path, self.every = path, every_seconds
        self.saved_at = self.started = time.monotonic()
        self.seconds_before = 0.0

    def due(self) -> bool:
        return time.monotonic() - self.saved_at >= self.every

    def load(self) -> dict[str, NDArray[Any]] | None:
        """The arrays saved last; None if there are none, or if they were damaged (then the run starts anew)."""
        from safetensors.numpy import load

        try:
            blob = self.path.read_bytes()
        except FileNotFoundError:
            return None
        digest, body = blob[:32], blob[32:]
        if hashlib.sha256(body).digest() != digest:
            return None
        arrays = load(body)
        self.seconds_before = float(arrays.pop("__seconds__")[0])
        return arrays

    def save(self, arrays: Arrays) -> None:
        from safetensors.numpy import save

        seconds = self.seconds_before + time.monotonic() - self.started
        body = save({**_contiguous(arrays), "__seconds__": np.array([seconds])})
        fresh = self.path.with_suffix(".new")
        with fresh.open("wb") as file:
            file.write(hashlib.sha256(body).digest() + body)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.path)
        self.saved_at = time.monotonic()

    def clear(self) -> None:
        for path in (self.path, self.path.with_suffix(".new")):
            path.unlink(missing_ok=True)


def _verified(folder: Path) -> dict[str, Any]:
    """The contents of spec.json, after every file of the folder has been checked against its sha256."""
    remedy = f"Compute it again with --recompute, or drop it: steppe runs remove {folder.name}"
    try:
        about = json.loads((folder / "spec.json").read_text())
        seal = about.pop("seal")
        whole = seal == _seal(about)
        digests = about["files"]
    except (OSError, ValueError, KeyError, AttributeError, UnicodeDecodeError):
        whole, digests = False, {}
    if not whole:
        raise StoreError(f"{folder / 'spec.json'} is missing or damaged. {remedy}")
    for name in _FILES:
        path = folder / name
        if not path.is_file() or _sha256(path) != digests.get(name):
            raise StoreError(f"{path} is missing or damaged: its sha256 is not the recorded one. {remedy}")
    return about  # type: ignore[no-any-return]


@contextlib.contextmanager
def _told(root: Path, verb: str) -> Iterator[None]:
    """An OSError of the disk becomes a StoreError with a remedy."""
    try:
        yield
    except OSError as error:
        reason = f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
        raise StoreError(
            f"cannot {verb} in the store {root}: {reason}. "
            "Nothing half-written is left. Free some space, or name another folder with --store or STEPPE_STORE."
        ) from error


def _write_parquet(path: Path, columns: Arrays) -> None:
    import duckdb

    table = {name: np.ascontiguousarray(column) for name, column in columns.items()}  # noqa: F841 (read by DuckDB)
    with duckdb.connect(config={"threads": 1}) as db:
        target = str(path).replace("'", "''")
        try:
            db.execute(f"COPY (SELECT * FROM table) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
        except duckdb.IOException as error:
            raise OSError(f"{error}") from error


def _write_safetensors(path: Path, arrays: Arrays) -> None:
    from safetensors.numpy import save

    path.write_bytes(save(_contiguous(arrays)))


def _contiguous(arrays: Arrays) -> dict[str, NDArray[Any]]:
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def _versions() -> dict[str, str]:
    packages = ("steppe", "jax", "jaxlib", "numba", "numpy", "scipy")
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in packages}}


def _seal(about: Mapping[str, Any]) -> str:
    return hashlib.sha256(_dumps(about).encode()).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _dumps(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, sort_keys=True, indent=indent, ensure_ascii=False, allow_nan=False)
