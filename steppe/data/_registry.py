"""The data sets that are read from files: names, sizes, sha256 and addresses of what their publishers offer."""

from dataclasses import dataclass

from steppe import check


class DataError(RuntimeError):
    """Data are missing, damaged or out of reach. The message names the file and the remedy."""


class MissingDataError(DataError):
    """The files of a data set are not in the data folder."""


@dataclass(frozen=True)
class File:
    """One file, identified by its content without compression."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Source:
    """A download: one compressed file, or an archive of several. Its addresses are tried in turn."""

    name: str
    bytes: int
    sha256: str
    addresses: tuple[str, ...]
    files: tuple[File, ...]


@dataclass(frozen=True)
class DataSet:
    """A data set of several downloads; `name` is also its folder inside the data folder."""

    name: str
    title: str
    sources: tuple[Source, ...]

    @property
    def files(self) -> tuple[File, ...]:
        return tuple(file for source in self.sources for file in source.files)


def _mnist_source(name: str, bytes_: int, sha256: str, plain_bytes: int, plain_sha256: str) -> Source:
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
        _mnist_source(
            "train-images-idx3-ubyte",
            9_912_422,
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            47_040_016,
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        _mnist_source(
            "train-labels-idx1-ubyte",
            28_881,
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            60_008,
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
        _mnist_source(
            "t10k-images-idx3-ubyte",
            1_648_877,
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            7_840_016,
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        _mnist_source(
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
