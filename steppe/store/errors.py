"""Troubles of the disk, said with the file and the remedy."""

import contextlib
from collections.abc import Iterator
from pathlib import Path


class StoreError(RuntimeError):
    """The store cannot be read or written; the message says which file and what to do."""


@contextlib.contextmanager
def told(folder: Path, verb: str) -> Iterator[None]:
    """An OSError of the disk becomes a StoreError with a remedy."""
    try:
        yield
    except OSError as error:
        reason = f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
        raise StoreError(
            f"cannot {verb} in the store {folder}: {reason}. "
            "Nothing half-written is left. Free some space, or name another folder with --store or STEPPE_STORE."
        ) from error
