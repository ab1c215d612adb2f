"""Where data files are looked for, and where they are written."""

import os
import sys
from pathlib import Path

# A checkout may have the data beside it; used where the user names no folder and has none of his own.
BESIDE = Path("../shared/data")


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
    """Where files are looked for, the first one first."""
    if folder or os.environ.get("STEPPE_DATA"):
        return (home(folder),)
    return (home(), BESIDE)
