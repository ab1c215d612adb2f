"""Files that are whole or not there: written beside their place, then renamed."""

import os
import tempfile
from pathlib import Path

from steppe.problems.data.files.errors import DataError


def write(path: Path, content: bytes) -> None:
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
            f"cannot write {path}: {error.strerror or error}. Nothing half-written is left. "
            "Free some space, or name another data folder with --data or STEPPE_DATA."
        ) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
