"""The files of data sets: where they are, whether they are whole, and their content without compression."""

import gzip
import hashlib
import lzma
import os
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from io import BufferedIOBase
from pathlib import Path
from typing import Literal

from steppe.data._registry import DataError, DataSet, File, MissingDataError

# Beside a checkout; searched last, and only if neither an argument nor STEPPE_DATA names a folder.
BESIDE = Path("../shared/data")

SUFFIXES = ("", ".gz", ".xz")
State = Literal["checked", "unchecked", "damaged", "missing"]


def cache() -> Path:
    """The user's cache folder for steppe, by the conventions of the system."""
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "steppe"


def home(folder: Path | None = None) -> Path:
    """The data folder: `folder`, else the variable STEPPE_DATA, else `data` in the user's cache folder."""
    named = folder or os.environ.get("STEPPE_DATA")
    return Path(named).expanduser() if named else cache() / "data"


def folders(folder: Path | None = None) -> tuple[Path, ...]:
    """The folders to search, in order."""
    if folder or os.environ.get("STEPPE_DATA"):
        return (home(folder),)
    return (home(), BESIDE)


def content(data_set: DataSet, name: str, folder: Path | None = None) -> bytes:
    """The content of a data set's file, with its sha256 checked.

    An uncompressed copy of a compressed file stays in the user's cache folder, for the next call.
    """
    (file,) = (f for f in data_set.files if f.name == name)
    path = find(data_set, file, folder)
    if path is None:
        raise _missing(data_set, file, folder)
    state = path.stat()
    return _read(path.resolve(), file, state.st_size, state.st_ctime_ns)


def find(data_set: DataSet, file: File, folder: Path | None = None) -> Path | None:
    """The path of a file in the data folder, preferably without compression; None if it is missing."""
    for root in folders(folder):
        for suffix in SUFFIXES:
            path = root / data_set.name / (file.name + suffix)
            if path.is_file():
                return path
    return None


@lru_cache(maxsize=8)  # the files of MNIST, or the batches of CIFAR-10
def _read(path: Path, file: File, size: int, changed: int) -> bytes:
    """The content; `size` and `changed` are part of the cache's key, so that a changed file is read again."""
    if not is_compressed(path):
        return checked(path, file)
    kept = _kept(file)
    if kept.is_file() and kept.stat().st_size == file.bytes and is_checked(kept, file.sha256):
        return kept.read_bytes()
    content = checked(path, file)
    try:
        write(kept, content)
    except DataError:
        return content
    mark(kept, file.sha256)
    return content


def _kept(file: File) -> Path:
    """The copy without compression of a compressed file."""
    return cache() / "plain" / file.sha256


def checked(path: Path, file: File, *, trust: bool = True) -> bytes:
    """The content of the file at `path`; raises unless it is the registered file.

    With `trust`, a file that has not changed since its last check is not hashed again.
    """
    try:
        with opened(path) as stream:
            # One byte more than expected shows that a file is too long without reading all of it.
            content = stream.read(file.bytes + 1)
        if len(content) != file.bytes or not (trust and is_checked(path, file.sha256)):
            check_content(str(path), content, file)
            mark(path, file.sha256)
    except DataError:
        forget(path, file)
        raise
    return content


def forget(path: Path, file: File) -> None:
    """After damage was found: nothing that was known of the file counts any more, nor does a copy of it."""
    _read.cache_clear()
    for known in (_stamp(path), _stamp(_kept(file)), _kept(file)):
        with suppress(OSError):
            known.unlink()


def check_content(where: str, content: bytes, file: File) -> None:
    """Raises unless the content has the size and sha256 of the registered file."""
    remedy = "Remove it, then `steppe data import FOLDER` or `steppe data download NAME`."
    if len(content) < file.bytes:
        raise DataError(f"{where} is truncated: {len(content):,} of {file.bytes:,} bytes of {file.name}. {remedy}")
    digest = hashlib.sha256(content).hexdigest()
    if len(content) > file.bytes or digest != file.sha256:
        raise DataError(
            f"{where} is not the published {file.name}: its sha256 is {digest[:16]}…, not {file.sha256[:16]}…. {remedy}"
        )


def _missing(data_set: DataSet, file: File, folder: Path | None = None) -> MissingDataError:
    searched = " nor in ".join(str(root / data_set.name) for root in folders(folder))
    return MissingDataError(
        f"{file.name} of {data_set.name} is not in {searched}. Get it with `steppe data download {data_set.name}`, or "
        f"import files that you have: `steppe data import FOLDER`. STEPPE_DATA names another data folder."
    )


@dataclass(frozen=True)
class Status:
    """One file of a data set: where it is, its bytes on disk, and whether it is whole."""

    data_set: str
    file: str
    path: Path | None
    bytes: int
    state: State
    trouble: str = ""


def status(data_set: DataSet, folder: Path | None = None, *, read: bool = False) -> list[Status]:
    """The state of each file. With `read` each file is read and hashed; else only its size and past checks count."""
    return [status_of(data_set, file, folder, read=read) for file in data_set.files]


def status_of(data_set: DataSet, file: File, folder: Path | None = None, *, read: bool = False) -> Status:
    path = find(data_set, file, folder)
    if path is None:
        return Status(data_set.name, file.name, None, 0, "missing")
    size = path.stat().st_size
    if not is_compressed(path) and size != file.bytes:
        trouble = f"{path} has {size:,} bytes, not {file.bytes:,}"
        return Status(data_set.name, file.name, path, size, "damaged", trouble)
    if read:
        _read.cache_clear()
        try:
            checked(path, file, trust=False)
            if is_compressed(path) and _kept(file).is_file():
                with suppress(DataError):  # a damaged copy is removed and made again
                    checked(_kept(file), file, trust=False)
        except DataError as error:
            return Status(data_set.name, file.name, path, size, "damaged", str(error))
    state: State = "checked" if is_checked(path, file.sha256) else "unchecked"
    return Status(data_set.name, file.name, path, size, "checked" if read else state)


@contextmanager
def opened(path: Path, packed: str | None = None) -> Iterator[BufferedIOBase]:
    """A stream of the content without compression; raises DataError if the file is damaged or unreadable.

    `packed` is the compression, as a suffix. Default: that of the name.
    """
    remedy = "Replace the file: `steppe data import FOLDER` or `steppe data download NAME`."
    try:
        with _open(path, path.suffix if packed is None else packed) as stream:
            yield stream
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is truncated or damaged ({error}). {remedy}") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}. {remedy}") from error


def _open(path: Path, packed: str) -> BufferedIOBase:
    if packed == ".gz":
        return gzip.open(path)
    return lzma.open(path) if packed == ".xz" else path.open("rb")


def packing(path: Path) -> str:
    """The compression of a file by its first bytes, whatever its name: .gz, .xz or none."""
    with opened(path, "") as stream:
        first = stream.read(6)
    return ".gz" if first.startswith(b"\x1f\x8b") else ".xz" if first == b"\xfd7zXZ\x00" else ""


def is_compressed(path: Path) -> bool:
    return path.suffix in SUFFIXES[1:]


def plain_name(path: Path) -> str:
    """The file's name without the suffix of its compression.

    >>> plain_name(Path("a/data_batch_1.bin.xz"))
    'data_batch_1.bin'
    """
    return path.name.removesuffix(path.suffix) if is_compressed(path) else path.name


def write(path: Path, content: bytes) -> None:
    """Writes a temporary file and renames it, so that a file is either whole or absent."""
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise DataError(
            f"cannot write {path}: {error.strerror or error}. No partial file is left. "
            "Free some space, or name another data folder with --data or STEPPE_DATA."
        ) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def is_checked(path: Path, sha256: str) -> bool:
    """Whether the file had this sha256 at its last check, and its size and times have not changed since."""
    stamp = _stamp(path)
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == _state(path, sha256)


def mark(path: Path, sha256: str) -> None:
    """Records a successful check. If the cache cannot be written, the next call checks the file again."""
    try:
        write(_stamp(path), _state(path, sha256).encode())
    except DataError:
        return


def _stamp(path: Path) -> Path:
    return cache() / "checked" / hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:32]


def _state(path: Path, sha256: str) -> str:
    found = path.stat()
    # `touch -r` and `cp -p` restore the time of the last change of the content, but nobody can set that of the inode.
    return f"{sha256} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino} {path.resolve()}\n"
