"""What goes wrong around a command is one line that names what and how, and is told before anything is computed."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from command_line import call

from steppe.sweep import WorkerDiedError

COMMAND = [sys.executable, "-m", "steppe"]


def one_line(done, code=1):
    assert done.returncode == code
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("steppe: ")
    return done.stderr


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STEPPE_STORE", raising=False)


@pytest.fixture
def nothing_is_computed(monkeypatch):
    monkeypatch.setattr("steppe.sweep.execute", lambda *a, **k: pytest.fail("computed"))
    monkeypatch.setattr("steppe.experiments.measure_all", lambda *a, **k: pytest.fail("judged"))


PLACES = ["/proc/no/page.html", "file/page.html", "x" * 300, "folder", "a\0b"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("command", [("verify", "wen2023", "--report"), ("report", "wen2023", "--out")])
def test_a_report_that_cannot_be_written(command, place, nothing_is_computed):
    Path("file").touch()
    Path("folder").mkdir()
    assert one_line(call(*command, place)).startswith(f"steppe: cannot write {place}: ")
    assert sorted(os.listdir()) == ["file", "folder"]


@pytest.mark.parametrize("place", ["/proc/no", "file", "file/x"])
def test_a_folder_of_figures_that_cannot_be_written(place, nothing_is_computed):
    Path("file").touch()
    message = one_line(call("reproduce", "wen2023/fig4b", "--out", place))
    assert message.startswith(f"steppe: cannot write {place}: ")
    assert message.endswith("change --out.\n")


def test_a_picture_of_a_sweep_that_cannot_be_written(monkeypatch):
    monkeypatch.setattr("steppe.rates.critical_rate", lambda *a, **k: pytest.fail("computed"))
    assert "cannot write" in one_line(call("critical", "a:b", "--sweep", "--out", "/proc/no/x"))


def full(*arguments, **options):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "somewhere")


def test_a_full_disk_while_drawing(monkeypatch):
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    done = call("reproduce", "wen2023/fig3", "--out", "out", "--json")
    assert "cannot write out: No space left on device. Free some space" in one_line(done)
    assert [p for p in Path("out").rglob("*") if p.is_file()] == []


def test_a_full_disk_while_the_report_is_written(monkeypatch):
    Path("page.md").write_text("the old one")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        done = call("report", "wen2023/eq5-printed", "--out", "page.md", "--json")
    assert "cannot write page.md: No space left" in done.stderr
    assert Path("page.md").read_text() == "the old one"
    assert os.listdir() == ["page.md"]


def test_a_device_without_space():
    """/dev/full takes no byte."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with Path("/dev/full").open("w") as device:
        done = subprocess.run([*COMMAND, "--help"], stdout=device, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("steppe: No space left on device")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--help"], ["verify", "--help"], ["list"], ["list", "--json"]])
def test_a_reader_that_has_gone(arguments):
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def test_a_terminal_of_few_letters():
    """A name or a message in letters that the output does not have is written with escapes."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    done = subprocess.run([*COMMAND, "--help"], capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"\xb7" in done.stdout


def test_a_killed_worker(monkeypatch):
    def killed(*a, **k):
        raise WorkerDiedError("a process that this command had started was killed from outside")

    monkeypatch.setattr("steppe.sweep.execute", killed)
    assert "killed from outside" in one_line(call("reproduce", "wen2023/fig4b", "--json"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_outside_of_runs(number, monkeypatch):
    """While claims are judged or figures drawn there is nothing to save."""

    def slow(*a, **k):
        threading.Timer(0.2, os.kill, (os.getpid(), number)).start()
        time.sleep(30)

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("steppe.experiments.measure_all", slow)
    assert one_line(call("verify", "wen2023/eq5-printed", "--json"), code=130) == "steppe: stopped.\n"
    assert signal.getsignal(signal.SIGTERM) is before


QUERIES = [
    "SELECT error('x')", "CALL enable_logging()", "DROP TABLE curves", "SELECT 1; SELECT 2", "", "SELECT ?", "\0",
    "SELECT * FROM range(100000000000)", "SELECT repeat('a', 10000000000)", "SELECT CAST(kind AS INT) FROM runs",
    "SELECT * FROM read_text('/etc/passwd')", "ATTACH ':memory:' AS x", "PRAGMA version",
]  # fmt: skip


@pytest.mark.parametrize("sql", QUERIES)
def test_queries_that_fail(sql, tmp_path, monkeypatch):
    from cases.toy_specs import Count

    from steppe.store import Store

    Store("runs").compute(Count(4), Count(4).compute)
    assert one_line(call("runs", "query", sql))


def test_an_export_that_cannot_be_written(monkeypatch):
    from cases.toy_specs import Count

    from steppe.store import Store

    Store("runs").compute(Count(4), Count(4).compute)
    assert "cannot write" in one_line(call("runs", "export", "/proc/no/all.csv"))
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", full)
        assert "cannot write all.csv: No space left" in one_line(call("runs", "export", "all.csv"))
    assert os.listdir() == ["runs"]


def test_what_is_no_file_is_not_replaced():
    """A FIFO, as any user can make; as root, /dev/null would be lost."""
    from cases.toy_specs import Count

    from steppe.store import Store

    Store("runs").compute(Count(4), Count(4).compute)
    os.mkfifo("pipe")
    for command in (("runs", "export"), ("report", "wen2023/eq5-printed", "--out")):
        assert "it is not a file" in one_line(call(*command, "pipe"))
    assert Path("pipe").is_fifo()
