"""steppe data import: what is known among the files of a folder, checked and put into the data folder."""

import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from steppe.problems.data.files import compression, pickles, registry, stamps, tables
from steppe.problems.data.files.content import refuse_other
from steppe.problems.data.files.errors import DataError
from steppe.problems.data.files.folder import home
from steppe.problems.data.files.registry import CIFAR10, HOUSING, MNIST, DataSet, File
from steppe.problems.data.files.written import write

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
    sets = list(registry.SETS.values()) if sets is None else sets
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
    stamps.mark(path, found.file.sha256)
    return Imported(found.data_set.name, found.file.name, found.source, path)


def _candidates(source: Path, sets: Sequence[DataSet], troubles: list[str]) -> Iterator[Found]:
    paths = [source] if source.is_file() else sorted(p for p in source.rglob("*") if p.is_file())
    for path in paths:
        try:
            if path.name.endswith(ARCHIVES):
                yield from unpacked(path, sets)
            elif _match(compression.plain_name(path), sets) is not None:
                with compression.opened(path) as stream:
                    found = _known(compression.plain_name(path), stream.read(), str(path), sets)
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
        content = pickles.records(content, source)
    if name in TABLES:
        content = tables.published(content, source)
    return Found(data_set, file, source, content)
