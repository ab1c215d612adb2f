"""Files of data sets: found, checked, imported and downloaded; errors name the file and leave no partial files."""

import gzip
import hashlib
import http.server
import io
import lzma
import os
import pickle
import socket
import tarfile
import threading
from collections import namedtuple

import numpy as np
import pytest

from steppe.data import DataError, MissingDataError
from steppe.data._files import content, folders, home, is_checked, mark, status
from steppe.data._formats import cifar_records, housing_table
from steppe.data._importing import _match, download, import_folder
from steppe.data._registry import CIFAR10, HOUSING, MNIST, DataSet, File, Source

A, B = bytes(range(256)) * 40, b"a second file" * 999


def sha(content):
    return hashlib.sha256(content).hexdigest()


def archive(**members):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, body in members.items():
            member = tarfile.TarInfo(f"folder/{name}")
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    return stream.getvalue()


SINGLE, PACKED = gzip.compress(A, mtime=0), archive(b=B, readme=b"hello")


def tiny(address="http://nowhere.invalid"):
    """A data set of one compressed file and one archive."""
    return DataSet(
        "tiny",
        "two files",
        (
            Source("a.gz", len(SINGLE), sha(SINGLE), (f"{address}/a.gz",), (File("a", len(A), sha(A)),)),
            Source("b.tgz", len(PACKED), sha(PACKED), (f"{address}/b.tgz",), (File("b", len(B), sha(B)),)),
        ),
    )


@pytest.fixture(autouse=True)
def _own_folders(tmp_path, monkeypatch):
    """The tests see neither the user's cache nor the user's data."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("STEPPE_DATA", str(tmp_path / "data"))


def test_the_folders_that_are_searched(tmp_path, monkeypatch):
    assert folders() == (tmp_path / "data",)
    assert folders(tmp_path / "named") == (tmp_path / "named",)
    monkeypatch.delenv("STEPPE_DATA")
    monkeypatch.setattr("sys.platform", "linux")
    assert home() == tmp_path / "cache" / "steppe" / "data"
    assert folders()[0] == home()


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_content_of_any_compression(tmp_path, suffix, pack):
    path = tmp_path / "data" / "tiny" / f"a{suffix}"
    path.parent.mkdir(parents=True)
    path.write_bytes(pack(A))
    assert content(tiny(), "a") == A
    states = {s.file: s.state for s in status(tiny())}
    assert states == {"a": "checked", "b": "missing"}
    # An uncompressed copy is kept, and read the next time.
    kept = tmp_path / "cache" / "steppe" / "plain" / sha(A)
    assert kept.exists() == bool(suffix)
    assert content(tiny(), "a") == A
    path.write_bytes(pack(A[:-1]))
    assert {s.state for s in status(tiny(), read=True)} == {"damaged", "missing"}


def test_missing(tmp_path):
    with pytest.raises(MissingDataError, match=r"a of tiny is not in .*steppe data download tiny.*STEPPE_DATA"):
        content(tiny(), "a")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("a", A[:100], "truncated: 100 of 10,240 bytes"),
        ("a", A[:-1] + b"!", "is not the published a: its sha256 is"),
        ("a", A + b"!", "is not the published a"),
        ("a.gz", gzip.compress(A)[:-20], "truncated or damaged"),
        ("a.xz", lzma.compress(A)[:-20], "truncated or damaged"),
        ("a.gz", b"no gzip", "truncated or damaged"),
        ("a.xz", b"no xz", "truncated or damaged"),
    ],
)
def test_damaged(tmp_path, name, body, message):
    path = tmp_path / "data" / "tiny" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(body)
    with pytest.raises(DataError, match=message) as error:
        content(tiny(), "a")
    assert "steppe data" in str(error.value)
    (found,) = (s for s in status(tiny(), read=True) if s.file == "a")
    assert found.state == "damaged"
    assert found.trouble


def test_a_change_after_the_check_is_detected(tmp_path):
    path = tmp_path / "data" / "tiny" / "a"
    path.parent.mkdir(parents=True)
    path.write_bytes(A)
    assert content(tiny(), "a") == A
    assert is_checked(path, sha(A))
    path.write_bytes(A[:-1] + b"!")
    assert not is_checked(path, sha(A))
    with pytest.raises(DataError, match="not the published a"):
        content(tiny(), "a")


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_what_the_check_calls_damaged_is_not_loaded(tmp_path, suffix):
    """Though its size and times are those of the last check, as after the disk has lost a bit."""
    path = tmp_path / "data" / "tiny" / f"a{suffix}"
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(A) if suffix else A)
    assert content(tiny(), "a") == A
    path.write_bytes(gzip.compress(B[: len(A)]) if suffix else B[: len(A)])
    mark(path, sha(A))
    assert {s.file: s.state for s in status(tiny(), read=True)}["a"] == "damaged"
    with pytest.raises(DataError, match="not the published a"):
        content(tiny(), "a")
    assert {s.file: s.state for s in status(tiny())}["a"] == "unchecked"


def test_a_change_that_keeps_size_and_time_is_detected(tmp_path):
    path = tmp_path / "data" / "tiny" / "a"
    path.parent.mkdir(parents=True)
    path.write_bytes(A)
    assert content(tiny(), "a") == A
    before = path.stat()
    path.write_bytes(A[:-1] + b"!")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(DataError, match="not the published a"):
        content(tiny(), "a")


def test_the_check_repairs_a_damaged_copy(tmp_path):
    """The copy without compression of a file that is whole."""
    path, kept = tmp_path / "data" / "tiny" / "a.gz", tmp_path / "cache" / "steppe" / "plain" / sha(A)
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(A))
    assert content(tiny(), "a") == A
    kept.write_bytes(B[: len(A)])
    mark(kept, sha(A))
    assert {s.file: s.state for s in status(tiny(), read=True)}["a"] == "checked"
    assert content(tiny(), "a") == A


def test_import_from_folders_and_archives(tmp_path):
    source = tmp_path / "downloads" / "deep"
    source.mkdir(parents=True)
    (source / "a.xz").write_bytes(lzma.compress(A))
    (source / "b.tgz").write_bytes(PACKED)
    (source / "unrelated.txt").write_text("x")
    done = import_folder(tmp_path / "downloads", sets=[tiny()])
    assert {i.file for i in done} == {"a", "b"}
    assert content(tiny(), "a") == A
    assert content(tiny(), "b") == B
    assert {s.state for s in status(tiny())} == {"checked"}
    # A file instead of a folder, and another data folder.
    import_folder(source / "a.xz", tmp_path / "other", sets=[tiny()])
    assert (tmp_path / "other" / "tiny" / "a").read_bytes() == A


def test_import_of_the_wrong_things(tmp_path):
    source = tmp_path / "downloads"
    with pytest.raises(DataError, match="does not exist"):
        import_folder(source, sets=[tiny()])
    source.mkdir()
    with pytest.raises(DataError, match=r"holds no file of a known data set. Known: a, b"):
        import_folder(source, sets=[tiny()])
    (source / "a").write_bytes(A[:-1] + b"!")
    with pytest.raises(DataError, match=r"Nothing was imported.*not the published a"):
        import_folder(source, sets=[tiny()])
    assert not (tmp_path / "data").exists()
    (source / "b").write_bytes(B)
    (source / "c.tar.gz").write_bytes(b"no archive")
    with pytest.raises(DataError, match=r"1 files were imported.*not the published a.*not a readable archive"):
        import_folder(source, sets=[tiny()])
    assert content(tiny(), "b") == B


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "data").write_text("a file where the folder should be")
    (tmp_path / "a").write_bytes(A)
    with pytest.raises(DataError, match=r"cannot write.*STEPPE_DATA"):
        import_folder(tmp_path / "a", sets=[tiny()])
    with pytest.raises(DataError, match=r"cannot write.*STEPPE_DATA"):
        download(tiny())


def test_names_of_the_published_files():
    """Which file a name means: MNIST with a dot, CIFAR-10's pickles, tables of houses."""
    sets = [MNIST, CIFAR10, HOUSING]
    for name, expected in {
        "train-images.idx3-ubyte": "train-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte": "t10k-labels-idx1-ubyte",
        "data_batch_3": "data_batch_3.bin",
        "test_batch.bin": "test_batch.bin",
        "housing.csv": "cal_housing.data",
    }.items():
        assert _match(name, sets)[1].name == expected
    assert _match("readme.html", sets) is None


@pytest.mark.parametrize("key", [str.encode, str], ids=["bytes", "text"])
@pytest.mark.parametrize("protocol", [2, 4])
def test_pickles_of_cifar(protocol, key):
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (5, 3072), dtype=np.uint8), [3, 1, 4, 1, 5]
    batch = pickle.dumps({key("data"): images, key("labels"): labels, key("filenames"): ["x"] * 5}, protocol)
    records = np.frombuffer(cifar_records(batch, "here"), np.uint8).reshape(5, 3073)
    np.testing.assert_array_equal(records[:, 0], labels)
    np.testing.assert_array_equal(records[:, 1:], images)


def test_a_pickle_runs_nothing(tmp_path):
    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "made"), "w"))

    with pytest.raises(DataError, match=r"not a batch of CIFAR-10's Python version.*cifar-10-python.tar.gz"):
        cifar_records(pickle.dumps(Evil()), "here")
    assert not (tmp_path / "made").exists()
    with pytest.raises(DataError, match="not a batch"):
        cifar_records(b"torn", "here")


def test_tables_with_missing_numbers_are_refused():
    with pytest.raises(DataError, match=r"cal_housing.tgz"):
        housing_table(b"-122.23,37.88,41,880,,322,126,8.3252,452600\n", "housing.csv")


Seen = namedtuple("Seen", ["path", "range"])


@pytest.fixture
def server():
    """Serves `bodies` by path, with ranges by default; an answer ends after `cut` bytes."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            wanted = self.headers.get("Range")
            self.server.seen.append(Seen(self.path, wanted))
            body = self.server.bodies.get(self.path)
            if body is None:
                self.send_error(404)
                return
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.server.ranges else 0
            self.send_response(206 if self.server.ranges else 200)
            self.send_header("Content-Length", str(len(body) - start))
            self.end_headers()
            self.wfile.write(body[start : self.server.cut])

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.bodies, running.seen = {"/a.gz": SINGLE, "/b.tgz": PACKED}, []
        running.ranges, running.cut = True, None
        running.address = f"http://127.0.0.1:{running.server_port}"
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def left(tmp_path):
    return sorted(p.name for p in (tmp_path / "data" / "tiny").iterdir() if not p.name.endswith(".lock"))


def test_download(server, tmp_path):
    shown = []
    done = download(tiny(server.address), progress=lambda *now: shown.append(now))
    assert {i.file for i in done} == {"a", "b"}
    assert content(tiny(), "a") == A
    assert content(tiny(), "b") == B
    assert left(tmp_path) == ["a", "b"]
    assert shown[-1] == ("b.tgz", len(PACKED), len(PACKED))
    # Whole files are not requested again; damaged files are.
    server.seen.clear()
    assert download(tiny(server.address)) == []
    assert server.seen == []
    (tmp_path / "data" / "tiny" / "b").write_bytes(b"torn")
    assert [i.file for i in download(tiny(server.address))] == ["b"]
    assert content(tiny(), "b") == B


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_download_continues(server, tmp_path, ranges):
    server.cut, server.ranges = 30, ranges
    with pytest.raises(DataError, match=rf"30 of {len(SINGLE):,} bytes.*the same command goes on"):
        download(tiny(server.address))
    assert left(tmp_path) == ["a.gz.part"]
    server.cut = None
    server.seen.clear()
    download(tiny(server.address))
    assert server.seen[0] == Seen("/a.gz", "bytes=30-")
    assert content(tiny(), "a") == A
    assert left(tmp_path) == ["a", "b"]


def test_wrong_content(server, tmp_path):
    server.bodies["/a.gz"] = SINGLE[:-1] + b"!"
    with pytest.raises(DataError, match=r"not a\.gz: sha256 .*steppe data import FOLDER"):
        download(tiny(server.address))
    assert left(tmp_path) == []
    server.bodies["/a.gz"] = SINGLE + b"and more"
    with pytest.raises(DataError, match=r"not a\.gz"):
        download(tiny(server.address))
    assert left(tmp_path) == []


@pytest.mark.parametrize("size", [20, len(SINGLE), len(SINGLE) + 5])
def test_a_part_of_something_else(server, tmp_path, size):
    """A wrong part is detected at the end, removed, and downloaded from the beginning."""
    part = tmp_path / "data" / "tiny" / "a.gz.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * size)
    assert len(download(tiny(server.address))) == 2
    assert content(tiny(), "a") == A
    assert left(tmp_path) == ["a", "b"]


def test_the_next_address_is_tried(server):
    here = tiny(server.address)
    first = here.sources[0]
    mirrored = Source(
        first.name, first.bytes, first.sha256, (f"{server.address}/gone/a.gz", *first.addresses), first.files
    )
    assert download(DataSet("tiny", "", (mirrored,)))[0].file == "a"
    server.bodies.clear()
    with pytest.raises(DataError, match="404"):
        download(DataSet("other", "", (mirrored,)))


def test_no_network(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(DataError, match=r"refused.*With no network here.*steppe data import FOLDER"):
        download(tiny(address))
    assert left(tmp_path) == []
