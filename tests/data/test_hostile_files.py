"""Files that would fill the memory: each is one clear error, and little is read of it."""

import gzip
import io
import lzma
import os
import pickle
import tarfile
import tracemalloc

import numpy as np
import pytest

from steppe.data import DataError
from steppe.data._formats import cifar_records, housing_table
from steppe.data._importing import import_folder
from steppe.data._registry import CIFAR10, HOUSING, DataSet, File, Source

BIG = 1 << 26
TINY = DataSet("tiny", "one file", (Source("a.gz", 1, "0" * 64, (), (File("a", 1000, "0" * 64),)),))


@pytest.fixture(autouse=True)
def _own_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("STEPPE_DATA", str(tmp_path / "data"))


@pytest.fixture
def little_memory():
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < BIG / 4


def member(name, size=0, kind=tarfile.REGTYPE):
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


def padded(body):
    return body + bytes(-len(body) % 512)


def sparse(name, size):
    """A member of `size` bytes that are a hole."""
    header = bytearray(member(name, 0, tarfile.GNUTYPE_SPARSE))
    header[386:410] = b"%011o\0%011o\0" % (0, 0)
    header[483:495] = tarfile.itn(size, 12, tarfile.GNU_FORMAT)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


ARCHIVES = {
    "a long member": member("a", BIG) + bytes(BIG),
    "a member of a terabyte": member("x", 1 << 40) + member("a", 4) + padded(b"abcd"),
    "a long name": member("././@LongLink", BIG, tarfile.GNUTYPE_LONGNAME) + bytes(BIG),
    "a long pax header": member("p", BIG, tarfile.XHDTYPE) + bytes(BIG),
    "a hole of a terabyte": sparse("a", 1 << 40),
    "torn": member("a", 2000) + b"abc",
    "nothing": b"",
    "a negative size": member("a").replace(b"00000000000\0", b"-0000000001\0", 1),
}


@pytest.mark.parametrize("content", ARCHIVES)
@pytest.mark.parametrize("name", ["x.tar", "x.tgz", "x.tar.xz"])
def test_archives(tmp_path, content, name, request):
    body = ARCHIVES[content]
    packed = {"x.tar": bytes, "x.tgz": lambda b: gzip.compress(b, 1), "x.tar.xz": lambda b: lzma.compress(b, preset=0)}
    (tmp_path / name).write_bytes(packed[name](body))
    request.getfixturevalue("little_memory")
    with pytest.raises(DataError, match=r"not a readable archive|is not a|truncated|holds no file|holds more than"):
        import_folder(tmp_path / name, sets=[TINY])


def test_a_large_archive_that_is_not_ours_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setattr("steppe.data._importing.LARGEST_ARCHIVE", 100_000)
    (tmp_path / "holiday.tar").write_bytes((member("film", 200_000) + padded(bytes(200_000))) * 2 + bytes(1024))
    with pytest.raises(DataError, match="holds no file of a known data set"):
        import_folder(tmp_path, sets=[TINY])


@pytest.mark.parametrize("name", ["x.tgz", "x.tar.xz", "x.tar"])
@pytest.mark.parametrize("cut", [0, 1, 7, 30, -30])
def test_torn_archives(tmp_path, name, cut):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode={"x.tgz": "w:gz", "x.tar.xz": "w:xz", "x.tar": "w"}[name]) as tar:
        info = tarfile.TarInfo("a")
        info.size = 100_000
        tar.addfile(info, io.BytesIO(np.random.default_rng(0).bytes(100_000)))
    (tmp_path / name).write_bytes(stream.getvalue()[:cut])
    with pytest.raises(DataError):
        import_folder(tmp_path / name, sets=[TINY])


@pytest.mark.parametrize(("name", "pack"), [("a.gz", lambda b: gzip.compress(b, 1)), ("a.xz", lzma.compress)])
def test_compressed_files(tmp_path, name, pack, request):
    (tmp_path / name).write_bytes(pack(bytes(BIG)))
    request.getfixturevalue("little_memory")
    with pytest.raises(DataError, match="holds more than 2,000 bytes, not 1,000"):
        import_folder(tmp_path, sets=[TINY])


def test_a_sparse_terabyte(tmp_path, little_memory):
    (tmp_path / "a").touch()
    os.truncate(tmp_path / "a", 1 << 40)
    with pytest.raises(DataError, match="holds more than"):
        import_folder(tmp_path, sets=[TINY])


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_is_passed_over(tmp_path, make):
    make(tmp_path / "a")
    with pytest.raises(DataError, match="holds no file"):
        import_folder(tmp_path, sets=[TINY])


class Asks:
    """A pickle of a few bytes that asks for a thousand million numbers."""

    def __reduce__(self):
        return np.zeros, (10**9,)


PICKLES = {
    "asks for memory": pickle.dumps(Asks()),
    "a memo of gigabytes": b"\x80\x02Nr\xff\xff\xff\x3f.",
    "bytes that are not there": b"\x80\x04\x8e" + (1 << 40).to_bytes(8, "little") + b"x.",
    "text that is not there": b"\x80\x04\x8d" + (1 << 62).to_bytes(8, "little") + b"x.",
    "nested": b"\x80\x02" + b"(" * 100_000 + b".",
    "long number": b"\x80\x02I" + b"9" * 10_000 + b"\n.",
    "unknown": b"\xff\xff",
    "empty": b"",
    "labels too large": pickle.dumps({"labels": [300], "data": bytes(3072)}),
    "labels negative": pickle.dumps({"labels": [-3], "data": bytes(3072)}),
    "not latin": pickle.dumps({"labels": [3], "data": "\u2192" * 3072}),
}


@pytest.mark.parametrize("name", PICKLES)
def test_pickles(name, little_memory):
    with pytest.raises(DataError, match="not a batch of CIFAR-10's Python version"):
        cifar_records(PICKLES[name], "here")


def test_an_archive_of_many_members(tmp_path):
    (tmp_path / "x.tar").write_bytes(member("x") * 2000)
    tracemalloc.start()
    with pytest.raises(DataError, match="holds no file"):
        import_folder(tmp_path / "x.tar", sets=[TINY])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500_000  # one member takes 700 bytes


@pytest.mark.parametrize("table", [b"1," + b"x" * 200_000, b"1,\0\n", b'1,"' + b"2" * 200_000, b"1," + b"9" * 5000])
def test_tables(table):
    with pytest.raises(DataError, match=r"not the published California housing table|is not the published"):
        _check(housing_table(table, "here"))


def _check(content):
    from steppe.data._files import check_content

    check_content("here", content + bytes(HOUSING.files[0].bytes), HOUSING.files[0])


def test_one_bad_file_does_not_stop_the_others(tmp_path):
    (tmp_path / "data_batch_1").write_bytes(PICKLES["asks for memory"])
    (tmp_path / "housing.csv").write_bytes(b"1," + b"x" * 200_000)
    (tmp_path / "x.tgz").write_bytes(b"torn")
    with pytest.raises(DataError, match=r"Nothing was imported.*data_batch_1.*housing.csv.*x.tgz"):
        import_folder(tmp_path, sets=[CIFAR10, HOUSING])
