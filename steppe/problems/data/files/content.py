"""The content of a registered file, wherever it is and however it is compressed, with its sha256 checked."""

import hashlib
from functools import lru_cache
from pathlib import Path

from steppe.problems.data.files import compression, stamps
from steppe.problems.data.files.errors import DataError, MissingDataError
from steppe.problems.data.files.folder import cache, folders
from steppe.problems.data.files.registry import DataSet, File
from steppe.problems.data.files.written import write


def find(data_set: DataSet, file: File, folder: Path | None = None) -> Path | None:
    """The file in the data folder, without compression if there is a choice."""
    for root in folders(folder):
        for suffix in compression.SUFFIXES:
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
    if not compression.is_compressed(path):
        return checked(path, file)
    kept = cache() / "plain" / file.sha256
    if kept.is_file() and kept.stat().st_size == file.bytes and stamps.is_checked(kept, file.sha256):
        return kept.read_bytes()
    found = checked(path, file)
    try:
        write(kept, found)
    except DataError:
        return found
    stamps.mark(kept, file.sha256)
    return found


def checked(path: Path, file: File, *, trust: bool = True) -> bytes:
    """The content of the file at `path`, refused where it is not the registered one.

    With `trust` the sha256 is not taken again of a file that has not changed since it was right.
    """
    with compression.opened(path) as stream:
        # One byte more than it should have: a file that is too long is not read to its end.
        found = stream.read(file.bytes + 1)
    if len(found) != file.bytes or not (trust and stamps.is_checked(path, file.sha256)):
        refuse_other(str(path), found, file)
        stamps.mark(path, file.sha256)
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
