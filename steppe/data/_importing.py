"""How data sets get into the data folder: from files that the user has, or by download."""

import gzip
import hashlib
import http.client
import tarfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from io import BufferedIOBase
from pathlib import Path
from typing import IO, Any

from filelock import FileLock

from steppe.data._files import check_content, home, mark, opened, packing, plain_name, status_of, write
from steppe.data._formats import cifar_records, housing_table
from steppe.data._registry import CIFAR10, HOUSING, MNIST, SETS, DataError, DataSet, File, Source

ARCHIVES = (".tar", ".tgz", ".tar.gz", ".tar.xz")
TABLES = ("cal_housing.csv", "california_housing.csv", "housing.csv")
# What is read of one file, in multiples of the registered size. A pickle or a table is a little longer than that.
LARGEST = 2
# What an archive may hold, all members together, and what the header of one member may take. That of CIFAR-10 holds
# 184 MB; headers have 512 bytes, or some more with long names.
LARGEST_ARCHIVE, LARGEST_HEADER = 1 << 28, 1 << 20
TIMEOUT = 30.0  # seconds
PIECE = 1 << 18  # bytes

# Called with (file, bytes received, bytes in total).
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Imported:
    """One file that is now in the data folder, and where it came from."""

    data_set: str
    file: str
    source: str
    path: Path


@dataclass(frozen=True)
class Found:
    """Content under the name of a registered file; not checked yet."""

    data_set: DataSet
    file: File
    source: str
    content: bytes


def import_folder(source: Path, folder: Path | None = None, *, sets: Sequence[DataSet] | None = None) -> list[Imported]:
    """Imports the known files below `source`: plain, gzip or xz, as pickles, or inside the publishers' archives.

    All valid files are imported. If others have a known name but wrong content, a DataError lists them at the end.
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
        summary = f"{len(done)} files were imported. " if done else "Nothing was imported. "
        raise DataError(summary + " ".join(troubles))
    if not done:
        names = ", ".join(f.name for s in sets for f in s.files)
        raise DataError(f"{source} holds no file of a known data set. Known: {names}; also as .gz, .xz or pickle.")
    return list(done.values())


def put(found: Found, folder: Path | None = None) -> Imported:
    """Checks the content and writes it into the data folder."""
    check_content(found.source, found.content, found.file)
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
                    yield _known(plain_name(path), stream, str(path), sets)
        except DataError as error:
            troubles.append(str(error))


def unpacked(path: Path, sets: Sequence[DataSet]) -> Iterator[Found]:
    """The known files inside an archive; nothing is unpacked to disk."""
    try:
        with opened(path, packing(path)) as stream:
            bounded: Any = Bounded(stream)
            with tarfile.open(fileobj=bounded, mode="r:") as archive:
                while (member := bounded.header(archive)) is not None:
                    name = Path(member.name).name
                    match = _match(name, sets)
                    if match is not None and member.isfile() and (content := archive.extractfile(member)) is not None:
                        bounded.left = LARGEST * match[1].bytes + LARGEST_HEADER
                        yield _known(name, content, f"{name} in {path}", sets)
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise DataError(f"{path} is not a readable archive ({error}). Download it again.") from error


class Bounded:
    """A stream that refuses to be read further than an archive of ours can be long.

    A few kilobytes, compressed, can hold terabytes: as members, or as headers, which tarfile reads into memory.
    """

    def __init__(self, inner: BufferedIOBase):
        self.inner, self.left = inner, LARGEST_HEADER

    def header(self, archive: Any) -> tarfile.TarInfo | None:
        """The next member of the archive that reads this stream."""
        self.left = LARGEST_HEADER
        archive.members.clear()  # a million empty members would fill the memory
        return archive.next()

    def read(self, size: int) -> bytes:
        self.left -= size
        if self.left < 0:
            raise tarfile.ReadError("a member or its header is too long")
        return self.inner.read(size)

    def seek(self, place: int) -> int:
        if place > LARGEST_ARCHIVE:
            raise tarfile.ReadError(f"it holds more than {LARGEST_ARCHIVE:,} bytes")
        return self.inner.seek(place)

    def tell(self) -> int:
        return self.inner.tell()


def _match(name: str, sets: Sequence[DataSet]) -> tuple[DataSet, File] | None:
    for data_set in sets:
        for file in data_set.files:
            if name in _names(data_set, file):
                return data_set, file
    return None


def _names(data_set: DataSet, file: File) -> tuple[str, ...]:
    """The names under which a file is published."""
    if data_set is MNIST:
        return file.name, file.name.replace("-idx", ".idx")
    if data_set is CIFAR10:
        return file.name, file.name.removesuffix(".bin")
    return (file.name, *TABLES) if data_set is HOUSING else (file.name,)


def _known(name: str, stream: BufferedIOBase | IO[bytes], source: str, sets: Sequence[DataSet]) -> Found:
    """The content of a file with a known name, in the format of the registered file."""
    match = _match(name, sets)
    assert match is not None
    data_set, file = match
    most = LARGEST * file.bytes
    content = stream.read(most + 1)
    if len(content) > most:
        raise DataError(f"{source} is not {file.name}: it holds more than {most:,} bytes, not {file.bytes:,}.")
    if data_set is CIFAR10 and name != file.name:
        content = cifar_records(content, source)
    if name in TABLES:
        content = housing_table(content, source)
    return Found(data_set, file, source, content)


def download(data_set: DataSet, folder: Path | None = None, *, progress: Progress | None = None) -> list[Imported]:
    """Downloads the files of a data set that are missing or damaged; stores them checked and without compression.

    A download that broke off continues.
    """
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
            states = [status_of(data_set, file, home(folder), read=True).state for file in source.files]
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
    """The path of the downloaded source with the right sha256, from the first address that offers it."""
    part, troubles = place / f"{source.name}.part", []
    for address in source.addresses:
        try:
            _fetch(address, source, part, progress)
            return part
        except DataError as error:
            troubles.append(f"{address}: {error}")
    raise DataError(
        f"{source.name} could not be downloaded. " + " ".join(troubles) + " With no network here, download it "
        "elsewhere and run `steppe data import FOLDER`. Bytes received so far are kept: the same command goes on."
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
        if begun:  # the part from an earlier attempt may be wrong
            return _fetch(address, source, part, progress)
        raise DataError(f"its content is not {source.name}: sha256 {digest[:16]}…, not {source.sha256[:16]}….")
    return None


def _receive(address: str, source: Source, part: Path, have: int, progress: Progress | None) -> None:
    request = urllib.request.Request(address, headers={"User-Agent": "steppe", "Range": f"bytes={have}-"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            # A server without support for ranges sends the whole file again.
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
