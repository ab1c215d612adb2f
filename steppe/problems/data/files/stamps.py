"""Which files had the right sha256 when they were last looked at, by size and time of change."""

import hashlib
from pathlib import Path

from steppe.problems.data.files import folder
from steppe.problems.data.files.errors import DataError
from steppe.problems.data.files.written import write


def is_checked(path: Path, sha256: str) -> bool:
    """Whether the file had that sha256 and has not changed since."""
    stamp = _stamp(path)
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == _state(path, sha256)


def mark(path: Path, sha256: str) -> None:
    """Remember it; where the cache cannot be written the file is looked at again next time."""
    try:
        write(_stamp(path), _state(path, sha256).encode())
    except DataError:
        return


def _stamp(path: Path) -> Path:
    return folder.cache() / "checked" / hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:32]


def _state(path: Path, sha256: str) -> str:
    found = path.stat()
    return f"{sha256} {found.st_size} {found.st_mtime_ns} {path.resolve()}\n"
