"""Reading the formats in which data sets are published: compressed files, IDX, CSV, pickles."""

import csv
import gzip
import hashlib
import io
import lzma
import pickle
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from io import BufferedIOBase
from pathlib import Path
from typing import Any, Literal

import numpy as np

from steppe.data._registry import DataError, DataSet, File, MissingDataError, cache, folders, is_checked, mark, write

# Files as they are, gzip or xz, read whole or in pieces.

SUFFIXES = ("", ".gz", ".xz")


def is_compressed(path: Path) -> bool:
    return path.suffix in SUFFIXES[1:]


def plain_name(path: Path) -> str:
    """
    >>> plain_name(Path("a/data_batch_1.bin.xz"))
    'data_batch_1.bin'
    """
    return path.name.removesuffix(path.suffix) if is_compressed(path) else path.name


@contextmanager
def opened(path: Path) -> Iterator[BufferedIOBase]:
    """The content without compression; a torn or unreadable file is a DataError with the remedy."""
    remedy = "Replace the file: `steppe data import FOLDER` or `steppe data download NAME`."
    try:
        with _open(path) as stream:
            yield stream
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is truncated or damaged ({error}). {remedy}") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}. {remedy}") from error


def _open(path: Path) -> BufferedIOBase:
    if path.suffix == ".gz":
        return gzip.open(path)
    return lzma.open(path) if path.suffix == ".xz" else path.open("rb")


# The content of a registered file, wherever it is and however it is compressed, with its sha256 checked.


def find(data_set: DataSet, file: File, folder: Path | None = None) -> Path | None:
    """The file in the data folder, without compression if there is a choice."""
    for root in folders(folder):
        for suffix in SUFFIXES:
            path = root / data_set.name / (file.name + suffix)
            if path.is_file():
                return path
    return None


def content(data_set: DataSet, name: str, folder: Path | None = None) -> bytes:
    """The content of the data set's file of that name.

    What was compressed is kept without compression in the user's cache folder, for the next time.
    """
    (file,) = (f for f in data_set.files if f.name == name)
    path = find(data_set, file, folder)
    if path is None:
        raise missing(data_set, file, folder)
    state = path.stat()
    return _read(path.resolve(), file, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=8)  # the files of MNIST, or the batches of CIFAR-10
def _read(path: Path, file: File, size: int, changed: int) -> bytes:
    """Read once, while size and time of change stay the same."""
    if not is_compressed(path):
        return checked(path, file)
    kept = cache() / "plain" / file.sha256
    if kept.is_file() and kept.stat().st_size == file.bytes and is_checked(kept, file.sha256):
        return kept.read_bytes()
    found = checked(path, file)
    try:
        write(kept, found)
    except DataError:
        return found
    mark(kept, file.sha256)
    return found


def checked(path: Path, file: File, *, trust: bool = True) -> bytes:
    """The content of the file at `path`, refused where it is not the registered one.

    With `trust` the sha256 is not taken again of a file that has not changed since it was right.
    """
    with opened(path) as stream:
        # One byte more than it should have: a file that is too long is not read to its end.
        found = stream.read(file.bytes + 1)
    if len(found) != file.bytes or not (trust and is_checked(path, file.sha256)):
        refuse_other(str(path), found, file)
        mark(path, file.sha256)
    return found


def refuse_other(where: str, found: bytes, file: File) -> None:
    remedy = "Remove it, then `steppe data import FOLDER` or `steppe data download NAME`."
    if len(found) < file.bytes:
        raise DataError(f"{where} is truncated: {len(found):,} of {file.bytes:,} bytes of {file.name}. {remedy}")
    digest = hashlib.sha256(found).hexdigest()
    if len(found) > file.bytes or digest != file.sha256:
        raise DataError(
            f"{where} is not the published {file.name}: its sha256 is {digest[:16]}…, not {file.sha256[:16]}…. {remedy}"
        )


def missing(data_set: DataSet, file: File, folder: Path | None = None) -> MissingDataError:
    looked = " nor in ".join(str(root / data_set.name) for root in folders(folder))
    return MissingDataError(
        f"{file.name} of {data_set.name} is not in {looked}. Get it with `steppe data download {data_set.name}`, or "
        f"take files that you have: `steppe data import FOLDER`. STEPPE_DATA names another data folder."
    )


# CIFAR-10's Python version: pickles of numpy arrays, read without running what else a pickle may hold.

# All that an array of numbers needs. numpy has moved its inner modules since these files were written.
_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): np._core.multiarray._reconstruct,  # type: ignore[attr-defined]
    ("numpy._core.multiarray", "_reconstruct"): np._core.multiarray._reconstruct,  # type: ignore[attr-defined]
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): lambda text, encoding: text.encode(encoding),
}


class _Arrays(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no table of images needs")
        return _ALLOWED[module, name]


def records(content: bytes, where: str) -> bytes:
    """A batch of the Python version as the binary version has it: for each image a label byte and its 3,072 pixels."""
    try:
        batch = _Arrays(io.BytesIO(content), encoding="bytes").load()
        # Keys are bytes in the published files, which Python 2 wrote, and texts in those written again since.
        named = {key.encode() if isinstance(key, str) else key: value for key, value in batch.items()}
        labels, pixels = np.asarray(named[b"labels"], np.uint8), np.asarray(named[b"data"], np.uint8)
        return np.concatenate([labels[:, None], pixels], axis=1).tobytes()
    except Exception as error:  # a pickle can fail in any way
        remedy = "Take the published cifar-10-python.tar.gz, or the binary version."
        raise DataError(f"{where} is not a batch of CIFAR-10's Python version: {error}. {remedy}") from error


# California housing as any CSV of its nine columns, with or without a header, written as it was published.


def published(content: bytes, where: str) -> bytes:
    """
    >>> published(b"longitude,...\\n-122.23,37.88,41,880,129,322,126,8.3252,452600\\n", "a.csv")
    b'-122.230000,37.880000,41.000000,880.000000,129.000000,322.000000,126.000000,8.325200,452600.000000\\n'
    """
    rows = list(csv.reader(io.StringIO(content.decode("utf-8", errors="replace"))))
    body = rows[1:] if rows and not _is_number(rows[0][0] if rows[0] else "") else rows
    try:
        lines = [",".join(f"{float(value):.6f}" for value in row[:9]) for row in body]
    except ValueError as error:
        raise DataError(
            f"{where} is not the published California housing table: {error}. It needs nine numbers a row, longitude "
            "first and median house value last; take cal_housing.data of cal_housing.tgz."
        ) from error
    return ("\n".join(lines) + "\n").encode()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# What there is of a data set, and whether it is whole.

State = Literal["checked", "unchecked", "damaged", "missing"]


@dataclass(frozen=True)
class Status:
    """One file of a data set: where it is, its bytes on disk, and what is known of it."""

    data_set: str
    file: str
    path: Path | None
    bytes: int
    state: State
    trouble: str = ""


def status(data_set: DataSet, folder: Path | None = None, *, look: bool = False) -> list[Status]:
    """The files of a data set. With `look` each is read and its sha256 taken; without, only what is known counts."""
    return [status_of(data_set, file, folder, look=look) for file in data_set.files]


def status_of(data_set: DataSet, file: File, folder: Path | None = None, *, look: bool = False) -> Status:
    path = find(data_set, file, folder)
    if path is None:
        return Status(data_set.name, file.name, None, 0, "missing")
    size = path.stat().st_size
    if not is_compressed(path) and size != file.bytes:
        trouble = f"{path} has {size:,} bytes, not {file.bytes:,}"
        return Status(data_set.name, file.name, path, size, "damaged", trouble)
    if look:
        try:
            checked(path, file, trust=False)
        except DataError as error:
            return Status(data_set.name, file.name, path, size, "damaged", str(error))
    state: State = "checked" if is_checked(path, file.sha256) else "unchecked"
    return Status(data_set.name, file.name, path, size, "checked" if look else state)
