"""Bringing data sets in: from files the user has, or by download."""

import gzip
import hashlib
import http.client
import tarfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from filelock import FileLock

from steppe.data._formats import opened, plain_name, published, records, refuse_other, status_of
from steppe.data._registry import CIFAR10, HOUSING, MNIST, SETS, DataError, DataSet, File, Source, home, mark, write

# steppe data import: what is known among the files of a folder, checked and put into the data folder.

ARCHIVES = (".tar", ".tgz", ".tar.gz", ".tar.xz")
TABLES = ("cal_housing.csv", "california_housing.csv", "housing.csv")


@dataclass(frozen=True)
class Imported:
    data_set: str
    file: str
    source: str
    path: Path


@dataclass(frozen=True)
class Found:
    """Content that goes by the name of a registered file."""

    data_set: DataSet
    file: File
    source: str
    content: bytes


def import_folder(source: Path, folder: Path | None = None, *, sets: Sequence[DataSet] | None = None) -> list[Imported]:
    """Files of `source` and the folders in it, plain, gzip or xz, as pickles, or inside the publishers' archives.

    What is whole is taken; if something else goes by a known name, a DataError says so at the end.
    """
    sets = list(SETS.values()) if sets is None else sets
    if not source.exists():
        raise DataError(f"{source} does not exist. Name the folder that holds the files you have.")
    done: dict[tuple[str, str], Imported] = {}
    troubles: list[str] = []
    for found in _candidates(source, sets, troubles):
        if (found.data_set.name, found.file.name) not in done:
            try:
                done[found.data_set.name, found.file.name] = put(found, folder)
            except DataError as error:
                troubles.append(str(error))
    if troubles:
        taken = f"{len(done)} files were imported. " if done else "Nothing was imported. "
        raise DataError(taken + " ".join(troubles))
    if not done:
        names = ", ".join(f.name for s in sets for f in s.files)
        raise DataError(f"{source} holds no file of a known data set. Known: {names}; also as .gz, .xz or pickle.")
    return list(done.values())


def put(found: Found, folder: Path | None = None) -> Imported:
    """The content at its place in the data folder, after its sha256 was checked."""
    refuse_other(found.source, found.content, found.file)
    path = home(folder) / found.data_set.name / found.file.name
    write(path, found.content)
    mark(path, found.file.sha256)
    return Imported(found.data_set.name, found.file.name, found.source, path)


def _candidates(source: Path, sets: Sequence[DataSet], troubles: list[str]) -> Iterator[Found]:
    paths = [source] if source.is_file() else sorted(p for p in source.rglob("*") if p.is_file())
    for path in paths:
        try:
            if path.name.endswith(ARCHIVES):
                yield from unpacked(path, sets)
            elif _match(plain_name(path), sets) is not None:
                with opened(path) as stream:
                    found = _known(plain_name(path), stream.read(), str(path), sets)
                if found is not None:
                    yield found
        except DataError as error:
            troubles.append(str(error))


def unpacked(path: Path, sets: Sequence[DataSet]) -> Iterator[Found]:
    """The known files inside an archive; nothing is unpacked to disk."""
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = Path(member.name).name
                if member.isfile() and _match(name, sets) is not None:
                    stream = archive.extractfile(member)
                    found = _known(name, stream.read() if stream else b"", f"{name} in {path}", sets)
                    if found is not None:
                        yield found
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DataError(f"{path} is no archive that can be read ({error}). Download it again.") from error


def _match(name: str, sets: Sequence[DataSet]) -> tuple[DataSet, File] | None:
    for data_set in sets:
        for file in data_set.files:
            if name in _names(data_set, file):
                return data_set, file
    return None


def _names(data_set: DataSet, file: File) -> tuple[str, ...]:
    """The names a file goes by."""
    if data_set is MNIST:
        return file.name, file.name.replace("-idx", ".idx")
    if data_set is CIFAR10:
        return file.name, file.name.removesuffix(".bin")
    return (file.name, *TABLES) if data_set is HOUSING else (file.name,)


def _known(name: str, content: bytes, source: str, sets: Sequence[DataSet]) -> Found | None:
    match = _match(name, sets)
    if match is None:
        return None
    data_set, file = match
    if data_set is CIFAR10 and name != file.name:
        content = records(content, source)
    if name in TABLES:
        content = published(content, source)
    return Found(data_set, file, source, content)


# steppe data download: from the publisher's address, going on where an earlier attempt ended.

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
