"""What there is of a data set, and whether it is whole."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from steppe.problems.data.files import compression, stamps
from steppe.problems.data.files.content import checked, find
from steppe.problems.data.files.errors import DataError
from steppe.problems.data.files.registry import DataSet, File

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
    if not compression.is_compressed(path) and size != file.bytes:
        trouble = f"{path} has {size:,} bytes, not {file.bytes:,}"
        return Status(data_set.name, file.name, path, size, "damaged", trouble)
    if look:
        try:
            checked(path, file, trust=False)
        except DataError as error:
            return Status(data_set.name, file.name, path, size, "damaged", str(error))
    state: State = "checked" if stamps.is_checked(path, file.sha256) else "unchecked"
    return Status(data_set.name, file.name, path, size, "checked" if look else state)
