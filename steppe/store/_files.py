"""The files of a run: curves, parameters, result and checkpoint, each with a checksum."""

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steppe.store._spec import dumps

if TYPE_CHECKING:
    from numpy.typing import NDArray

Arrays = Mapping[str, "NDArray[Any]"]
DATA_FILES = ("curves.parquet", "params.safetensors", "result.json")
_DIGEST = 32  # bytes of the sha256 in front of a checkpoint


class StoreError(RuntimeError):
    """The store cannot be read or written. The message names the file and the remedy."""


@contextlib.contextmanager
def disk_errors(folder: Path, verb: str) -> Iterator[None]:
    """Raise an OSError of the block as a StoreError with a remedy."""
    try:
        yield
    except OSError as error:
        reason = f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
        raise StoreError(
            f"cannot {verb} in the store {folder}: {reason}. "
            "No half-written file is left. Free some space, or name another folder with --store or STEPPE_STORE."
        ) from error


def write_parquet(path: Path, columns: Arrays) -> None:
    """Write one column for each array, or for each component of an array of vectors."""
    import duckdb
    import numpy as np

    table: dict[str, NDArray[Any]] = {}
    for name, column in columns.items():
        flat = np.ascontiguousarray(column).reshape(len(column), int(np.prod(np.shape(column)[1:])))
        names = [name] if np.ndim(column) == 1 else [f"{name}[{k}]" for k in range(flat.shape[1])]
        table |= dict(zip(names, map(np.ascontiguousarray, flat.T), strict=True))
    with duckdb.connect(config={"threads": 1}) as db:
        db.register("curves", table)
        target = str(path).replace("'", "''")
        try:
            db.execute(f"COPY (SELECT * FROM curves) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
        except duckdb.IOException as error:
            raise OSError(str(error)) from error


def read_parquet(path: Path) -> "dict[str, NDArray[Any]]":
    import duckdb
    import numpy as np

    with duckdb.connect() as db:
        columns = db.read_parquet(str(path)).fetchnumpy()
    # DuckDB masks NaN: read without this, it is 0.
    return {name: np.ma.filled(c, np.nan) if np.ma.isMaskedArray(c) else c for name, c in columns.items()}


def write_safetensors(path: Path, arrays: Arrays) -> None:
    path.write_bytes(tensor_bytes(arrays))


def tensor_bytes(arrays: Arrays) -> bytes:
    import numpy as np
    from safetensors.numpy import save

    # ascontiguousarray alone turns a number into a vector.
    return save({name: np.ascontiguousarray(array).reshape(np.shape(array)) for name, array in arrays.items()})


def write_about(folder: Path, about: Mapping[str, Any]) -> None:
    """Write spec.json: the description of the run, the sha256 of the other files, and a seal over both."""
    about = {**about, "files": {name: sha256(folder / name) for name in DATA_FILES}}
    (folder / "spec.json").write_text(dumps(about | {"seal": seal(about)}, indent=2) + "\n", encoding="utf-8")


def verified_about(folder: Path) -> dict[str, Any]:
    """The contents of spec.json. Raises StoreError if any file of the folder is missing or damaged."""
    remedy = f"Compute it again with --recompute, or remove it: steppe runs remove {folder.name}"
    try:
        about = json.loads((folder / "spec.json").read_text(encoding="utf-8"))
        whole = about.pop("seal") == seal(about)
        digests = about["files"]
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        whole, about, digests = False, {}, {}
    if not whole:
        raise StoreError(f"{folder / 'spec.json'} is missing or damaged. {remedy}")
    for name in DATA_FILES:
        path = folder / name
        if not path.is_file() or sha256(path) != digests.get(name):
            raise StoreError(f"{path} is missing or damaged: its sha256 differs from the recorded one. {remedy}")
    return about


def seal(about: Mapping[str, Any]) -> str:
    return hashlib.sha256(dumps(about).encode()).hexdigest()


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Checkpoint:
    """Named arrays on disk, from which a killed run continues. A save replaces all of them or none."""

    def __init__(self, path: Path, every_seconds: float):
        self.path, self.every = path, every_seconds
        self.saved_at = self.started = time.monotonic()
        self.seconds_before = 0.0

    def __repr__(self) -> str:
        return f"the checkpoint {self.path}"

    @property
    def seconds(self) -> float:
        """Seconds spent on the run so far, in this process and in earlier ones."""
        return self.seconds_before + time.monotonic() - self.started

    def due(self) -> bool:
        """Whether the last save is long enough ago for another one."""
        return time.monotonic() - self.saved_at >= self.every

    def load(self) -> "dict[str, NDArray[Any]] | None":
        """The arrays of the last save, or None if there are none or they are damaged. Then the run starts again."""
        from safetensors.numpy import load

        with disk_errors(self.path.parent, "read"):
            blob = self.path.read_bytes() if self.path.exists() else b""
        if len(blob) <= _DIGEST or hashlib.sha256(blob[_DIGEST:]).digest() != blob[:_DIGEST]:
            return None
        arrays: dict[str, NDArray[Any]] = load(blob[_DIGEST:])
        self.seconds_before = float(arrays.pop("seconds")[0])
        return arrays

    def save(self, arrays: Arrays) -> None:
        import numpy as np

        body = tensor_bytes({**arrays, "seconds": np.array([self.seconds])})
        fresh = self.path.with_suffix(".new")
        with disk_errors(self.path.parent, "write"):
            try:
                with fresh.open("wb") as file:
                    file.write(hashlib.sha256(body).digest() + body)
                    file.flush()
                    os.fsync(file.fileno())
                fresh.replace(self.path)
            except OSError:
                fresh.unlink(missing_ok=True)
                raise
        self.saved_at = time.monotonic()

    def clear(self) -> None:
        for path in (self.path, self.path.with_suffix(".new")):
            path.unlink(missing_ok=True)
