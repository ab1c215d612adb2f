"""steppe data download: from the publisher's address, going on where an earlier attempt ended."""

import gzip
import hashlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

from filelock import FileLock

from steppe.problems.data.files.check import status_of
from steppe.problems.data.files.errors import DataError
from steppe.problems.data.files.folder import home
from steppe.problems.data.files.importing import ARCHIVES, Found, Imported, put, unpacked
from steppe.problems.data.files.registry import DataSet, Source

TIMEOUT = 30.0
PIECE = 1 << 18

# (file, bytes there, bytes in all)
Progress = Callable[[str, int, int], None]


def download(data_set: DataSet, folder: Path | None = None, *, progress: Progress | None = None) -> list[Imported]:
    """The files of a data set that are not in the data folder yet, checked, without compression."""
    place = home(folder) / data_set.name
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"cannot write {place}: {error.strerror}. Name another folder: --data or STEPPE_DATA."
        ) from error
    done = []
    with FileLock(place / ".download.lock"):
        for source in data_set.sources:
            states = [status_of(data_set, file, home(folder), look=True).state for file in source.files]
            if any(state != "checked" for state in states):
                archive = _fetched(source, place, progress)
                done += [put(found, folder) for found in _inside(data_set, source, archive)]
                archive.unlink()
    return done


def _inside(data_set: DataSet, source: Source, archive: Path) -> list[Found]:
    if source.name.endswith(ARCHIVES):
        found = [f for f in unpacked(archive, [data_set]) if f.file in source.files]
        if len(found) != len(source.files):
            raise DataError(f"{source.name} lacks some of its files. Remove {archive} and download it again.")
        return found
    (file,) = source.files
    return [Found(data_set, file, source.name, gzip.decompress(archive.read_bytes()))]


def _fetched(source: Source, place: Path, progress: Progress | None) -> Path:
    """The source beside its place, whole and with the right sha256, from the first address that gives it."""
    part, troubles = place / f"{source.name}.part", []
    for address in source.addresses:
        try:
            _fetch(address, source, part, progress)
            return part
        except DataError as error:
            troubles.append(f"{address}: {error}")
    raise DataError(
        f"{source.name} could not be downloaded. " + " ".join(troubles) + " With no network here, download it "
        "elsewhere and run `steppe data import FOLDER`; what is there already is kept, and the same command goes on."
    )


def _fetch(address: str, source: Source, part: Path, progress: Progress | None) -> None:
    begun = part.stat().st_size if part.is_file() else 0
    if begun < source.bytes:
        _receive(address, source, part, begun, progress)
    have = part.stat().st_size
    if have < source.bytes:
        raise DataError(f"the connection ended after {have:,} of {source.bytes:,} bytes.")
    with part.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if have > source.bytes or digest != source.sha256:
        part.unlink()
        if begun:  # it may be the beginning that was wrong
            return _fetch(address, source, part, progress)
        raise DataError(f"what it gives is not {source.name}: sha256 {digest[:16]}…, not {source.sha256[:16]}….")
    return None


def _receive(address: str, source: Source, part: Path, have: int, progress: Progress | None) -> None:
    request = urllib.request.Request(address, headers={"User-Agent": "steppe", "Range": f"bytes={have}-"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            # A server that does not know ranges begins again, and so do we.
            resumed = answer.status == HTTPStatus.PARTIAL_CONTENT
            with part.open("ab" if resumed else "wb") as stream:
                have = have if resumed else 0
                while have <= source.bytes and (piece := answer.read(PIECE)):
                    stream.write(piece)
                    have += len(piece)
                    if progress is not None:
                        progress(source.name, have, source.bytes)
    except urllib.error.HTTPError as error:
        raise DataError(f"the server says {error.code} {error.reason}.") from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise DataError(f"{reason}.") from error
