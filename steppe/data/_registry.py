"""The files of real data sets: which there are, where they lie, and whether they are whole."""

import hashlib
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from steppe import check

# Troubles with data files, said with the file and the remedy.


class DataError(RuntimeError):
    """Data are missing, damaged or out of reach; the message says which file and what to do."""


class MissingDataError(DataError):
    """The files are not there, which is no fault of theirs."""


# Where data files are looked for, and where they are written.

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


# The data sets that come as files: their names, sizes, sha256 and the publishers' addresses.


@dataclass(frozen=True)
class File:
    """One file, known by its content without compression: any compression of it will do."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Source:
    """What is downloaded, and the files inside: one that is compressed, or an archive of several.

    The addresses are tried one after the other.
    """

    name: str
    bytes: int
    sha256: str
    addresses: tuple[str, ...]
    files: tuple[File, ...]


@dataclass(frozen=True)
class DataSet:
    """`name` is also its folder inside the data folder."""

    name: str
    title: str
    sources: tuple[Source, ...]

    @property
    def files(self) -> tuple[File, ...]:
        return tuple(file for source in self.sources for file in source.files)


def _mnist(name: str, bytes_: int, sha256: str, plain_bytes: int, plain_sha256: str) -> Source:
    mirrors = (
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        "https://storage.googleapis.com/cvdf-datasets/mnist",
        "http://yann.lecun.com/exdb/mnist",
    )
    addresses = tuple(f"{mirror}/{name}.gz" for mirror in mirrors)
    return Source(f"{name}.gz", bytes_, sha256, addresses, (File(name, plain_bytes, plain_sha256),))


MNIST = DataSet(
    "mnist",
    "MNIST: 60,000 + 10,000 handwritten digits, 28 × 28",
    (
        _mnist(
            "train-images-idx3-ubyte",
            9_912_422,
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            47_040_016,
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        _mnist(
            "train-labels-idx1-ubyte",
            28_881,
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            60_008,
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
        _mnist(
            "t10k-images-idx3-ubyte",
            1_648_877,
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            7_840_016,
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        _mnist(
            "t10k-labels-idx1-ubyte",
            4_542,
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            10_008,
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    ),
)

_BATCHES = {
    "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}

CIFAR10 = DataSet(
    "cifar10",
    "CIFAR-10: 50,000 + 10,000 colour images of ten kinds, 32 × 32",
    (
        Source(
            "cifar-10-binary.tar.gz",
            170_052_171,
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
            tuple(File(name, 30_730_000, sha256) for name, sha256 in _BATCHES.items()),
        ),
    ),
)

HOUSING = DataSet(
    "california_housing",
    "California housing: 20,640 block groups, 8 features, median house value",
    (
        Source(
            "cal_housing.tgz",
            441_963,
            "aaa5c9a6afe2225cc2aed2723682ae403280c4a3695a2ddda4ffb5d8215ea681",
            (
                "https://ndownloader.figshare.com/files/5976036",
                "https://www.dcc.fc.up.pt/~ltorgo/Regression/cal_housing.tgz",
            ),
            (
                File(
                    "cal_housing.data",
                    2_071_484,
                    "a2b44dcc7e1c9091b43c4f458b25cbd1f7e8068d08edd26bc4703108d3fa6214",
                ),
            ),
        ),
    ),
)

SETS = {data_set.name: data_set for data_set in (MNIST, CIFAR10, HOUSING)}


def named(name: str) -> DataSet:
    """The data set of that name.

    >>> named("mnist").files[0].name
    'train-images-idx3-ubyte'
    """
    if name not in SETS:
        raise check.ArgumentError(f"unknown data set {name!r}. " + check.suggest(name, SETS))
    return SETS[name]


# Files that are whole or not there: written beside their place, then renamed.


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


# Which files had the right sha256 when they were last looked at, by size and time of change.


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
    return cache() / "checked" / hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:32]


def _state(path: Path, sha256: str) -> str:
    found = path.stat()
    return f"{sha256} {found.st_size} {found.st_mtime_ns} {path.resolve()}\n"
