"""The files of a run: curves, parameters, result and spec, each with a checksum."""

import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from steppe.store._spec import StoreError as StoreError  # noqa: PLC0414  # beside the errors of files
from steppe.store._spec import address_of, dumps

if TYPE_CHECKING:
    from numpy.typing import NDArray

Arrays = Mapping[str, "NDArray[Any]"]
DATA_FILES = ("curves.parquet", "params.safetensors", "result.json")
T = TypeVar("T")

# A spec.json is a few kilobytes. More than this is no spec, and is not read into memory.
_LARGEST_SPEC = 1 << 24


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
    with _duckdb().cursor() as db:  # each thread has a cursor of its own
        db.register("curves", table)
        target = str(path).replace("'", "''")
        try:
            db.execute(f"COPY (SELECT * FROM curves) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
        except duckdb.IOException as error:
            raise OSError(str(error)) from error


def read_parquet(path: Path) -> "dict[str, NDArray[Any]]":
    import numpy as np

    with _duckdb().cursor() as db:
        columns = db.read_parquet(str(path)).fetchnumpy()
    # DuckDB masks NaN: read without this, it is 0.
    return {name: np.ma.filled(c, np.nan) if np.ma.isMaskedArray(c) else c for name, c in columns.items()}


def write_safetensors(path: Path, arrays: Arrays) -> None:
    path.write_bytes(tensor_bytes(arrays))


def tensor_bytes(arrays: Arrays, notes: Mapping[str, str] | None = None) -> bytes:
    """Arrays as a safetensors file, with notes in its header."""
    import numpy as np
    from safetensors.numpy import save

    # ascontiguousarray alone turns a number into a vector.
    plain = {name: np.ascontiguousarray(array).reshape(np.shape(array)) for name, array in arrays.items()}
    return save(plain, dict(notes) if notes else None)


def write_about(folder: Path, about: Mapping[str, Any]) -> None:
    """Write spec.json: the description of the run, the sha256 of the other files, and a seal over both."""
    about = {**about, "files": {name: sha256(folder / name) for name in DATA_FILES}}
    (folder / "spec.json").write_text(dumps(about | {"seal": seal(about)}, indent=2) + "\n", encoding="utf-8")


def verified_about(folder: Path) -> dict[str, Any]:
    """The contents of spec.json. Raises StoreError if a file is missing or damaged, or the run is another one."""
    path = folder / "spec.json"
    try:
        about = json.loads(_regular(path, _LARGEST_SPEC))
        whole = about.pop("seal") == seal(about)
        id, digests, _ = address_of(about["spec"]), about["files"], about["versions"]["steppe"]
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
        whole, about, id, digests = False, {}, "", {}
    if not whole:
        raise damaged(path)
    if id != folder.name:
        raise StoreError(
            f"{folder} holds the run {id}: somebody renamed or copied the folder. "
            f"Rename it to {id}, or remove it: steppe runs remove {folder.name}"
        )
    for name in DATA_FILES:
        if not (folder / name).is_file() or sha256(folder / name) != digests.get(name):
            raise damaged(folder / name)
    return about


def read_verified(path: Path, digest: str | None, read: Callable[[Path], T]) -> T:
    """`read(path)` of a file with this sha256. The file is hashed before, for a damaged one may crash its reader, and
    after it was read, so that no change goes unseen."""
    if not path.is_file() or sha256(path) != digest:  # a FIFO would block, and a device may have no end
        raise damaged(path)
    try:
        found, error = read(path), None
    except Exception as raised:
        error = raised
    if sha256(path) != digest:
        raise damaged(path) from error
    if error is not None:
        raise error
    return found


def damaged(path: Path) -> StoreError:
    return StoreError(
        f"{path} is missing or damaged, or has changed while it was read. "
        f"Compute the run again with --recompute, or remove it: steppe runs remove {path.parent.name}"
    )


def _regular(path: Path, largest: int) -> bytes:
    """The bytes of a regular file that is not too large."""
    if not path.is_file() or path.stat().st_size > largest:
        raise ValueError(path)
    return path.read_bytes()


def seal(about: Mapping[str, Any]) -> str:
    return hashlib.sha256(dumps(about).encode()).hexdigest()


def sha256(path: Path) -> str | None:
    """None if the file cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def sync(paths: Sequence[Path]) -> None:
    """Bring files and folders to the disk, all at once: a journal takes as long for five of them as for one."""
    with ThreadPoolExecutor(len(paths)) as pool:
        for _ in pool.map(_sync, paths):
            pass


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@functools.cache
def _duckdb() -> Any:
    """A database in memory for the files of this process: to open one takes as long as to write ten files."""
    import duckdb

    return duckdb.connect(config={"threads": 1})
