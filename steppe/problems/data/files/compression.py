"""Files as they are, gzip or xz, read whole or in pieces."""

import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path

from steppe.problems.data.files.errors import DataError

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
