"""The command line as a user meets it: in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import steppe


def call(*arguments, cwd=None, **environment):
    return subprocess.run(
        [sys.executable, "-m", "steppe", *map(str, arguments)],
        capture_output=True, text=True, cwd=cwd, env=os.environ | environment, timeout=300, check=False,
    )  # fmt: skip


TINY = ("--set", "epochs=30", "--set", "width=20", "--set", "test=100")
LONG = ("--set", "epochs=20000000")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with the runs of one tiny figure, and what reproducing it printed."""
    root = tmp_path_factory.mktemp("store")
    done = call("reproduce", "wen2023/fig4b", *TINY, "--store", root, "--out", root / "out", "--json")
    assert done.returncode == 0, done.stderr
    return root, done


def test_version():
    done = call("--version")
    assert done.stdout == f"steppe {steppe.__version__}\n"
    assert done.returncode == 0


def test_help_names_every_command_and_gives_examples():
    text = call("--help").stdout
    for command in ("list", "reproduce", "verify", "runs", "data", "bench", "report", "completion"):
        assert command in text
    assert "steppe reproduce wen2023/fig4b" in text
    assert "Example" in call("verify", "--help").stdout
    assert call().stdout == text


@pytest.mark.parametrize("arguments", [["--help"], ["list"], ["list", "--json"], ["runs", "--help"]])
def test_quick_commands_import_nothing_heavy(arguments):
    """JAX alone takes a second to import; numpy, numba and matplotlib are not needed either."""
    code = (
        "import sys; from steppe.cli import main\n"
        f"try: main({arguments!r})\n"
        "except SystemExit: pass\n"
        "heavy = {'jax', 'numba', 'numpy', 'scipy', 'matplotlib', 'duckdb'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_list():
    entries = json.loads(call("list", "--json").stdout)
    papers = {e["id"] for e in entries if e["kind"] == "paper"}
    assert {"conflicting-biases", "mulayoff2021", "wen2023"} <= papers
    figures = {e["id"]: e for e in entries if e["kind"] == "figure"}
    assert figures["wen2023/fig4b"]["seconds"]["paper"] > figures["wen2023/fig4b"]["seconds"]["smoke"]
    assert "wen2023/fig4b" in call("list").stdout


def test_reproduce_writes_three_files_a_figure(store):
    _, done = store
    paths = json.loads(done.stdout)
    assert [p.rsplit(".", 1)[1] for p in paths] == ["png", "pdf", "json"]
    for path in paths:
        assert os.path.getsize(path) > 1000
    numbers = json.loads(Path(paths[2]).read_text())
    assert len(numbers["runs"]) == 2
    assert numbers["runs"][0]["epoch"][-1] == 60


def test_reproduce_again_computes_nothing(store):
    root, _ = store
    again = call("reproduce", "wen2023/fig4b", *TINY, "--store", root, "--out", root / "again")
    assert again.returncode == 0
    assert "running" not in again.stderr
    assert again.stdout.count("wrote ") == 3


def test_runs(store):
    root, _ = store
    listed = json.loads(call("runs", "list", "--store", root, "--json").stdout)
    assert len(listed) == 2
    assert {r["outcome"] for r in listed} == {"exhausted"}
    id = listed[0]["id"]
    assert id in call("runs", "list", "--store", root).stdout
    assert json.loads(call("runs", "show", id[:8], "--store", root).stdout)["spec"]["width"] == 20
    answer = call("runs", "query", "SELECT count(DISTINCT run) AS n FROM curves", "--store", root, "--json")
    assert json.loads(answer.stdout) == [{"n": 2}]
    assert call("runs", "export", root / "all.csv", "--store", root).returncode == 0
    assert (root / "all.csv").read_text().startswith("run,step,epoch,train_loss")


def test_runs_of_a_damaged_store(store, tmp_path):
    root, _ = store
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    id = json.loads(call("runs", "list", "--store", copy, "--json").stdout)[0]["id"]
    (copy / id / "curves.parquet").write_bytes(b"torn")
    listed = json.loads(call("runs", "list", "--store", copy, "--json").stdout)
    assert "curves.parquet" in listed[0]["damaged"]
    again = call("reproduce", "wen2023/fig4b", *TINY, "--store", copy, "--out", copy / "out")
    assert again.returncode == 1
    assert "curves.parquet is missing or damaged" in again.stderr
    assert call("runs", "remove", id, "--store", copy).returncode == 0
    assert id not in call("runs", "list", "--store", copy).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["reproduce", "wen2023/fig4"], 2, "Did you mean 'fig4b'"),
        (["reproduce", "wen/fig4b"], 2, "wen2023"),
        (["verify", "wen2032"], 2, "Did you mean 'wen2023'"),
        (["verify", "wen2023/eq5-print"], 2, "Did you mean 'eq5-printed'"),
        (["bench", "sma"], 2, "Did you mean 'sam'"),
        (["reproduce", "wen2023/fig4b", "--set", "widht=3"], 2, "Did you mean 'width'"),
        (["reproduce", "wen2023/fig4b", "--workers", "0"], 2, "--workers must be a whole number ≥ 1"),
        (["runs", "show", "abc", "--store", "nowhere"], 1, "no run 'abc'"),
        (["runs", "query", "SELECT 1", "--store", "nowhere"], 1, "no runs in nowhere"),
        (["reprodcue"], 2, "reproduce"),
        (["reproduce", "wen2023/fig4b", "--scael", "paper"], 2, "--scale"),
        (["reproduce", "wen2023/fig4b", "--scale", "huge"], 2, "paper"),
    ],
)
def test_wrong_use(arguments, code, message, tmp_path):
    done = call(*arguments, cwd=tmp_path)
    assert done.returncode == code
    assert message in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_store_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    done = call("reproduce", "wen2023/fig4b", *TINY, "--store", tmp_path / "file" / "x", "--out", tmp_path / "out")
    assert done.returncode == 1
    assert "cannot write in the store" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("claim", "verdict", "misprint"),
    [("eq5-corrected", "holds", False), ("eq5-printed", "fails", True), ("fig4b-attains-bound", "not-run", False)],
)
def test_report_judges_what_is_there(store, tmp_path, claim, verdict, misprint):
    root, _ = store
    done = call("report", f"wen2023/{claim}", "--store", root, "--out", tmp_path / "page.html", "--json")
    (result,) = json.loads(done.stdout)
    keys = {"id", "source", "statement", "expected", "measured", "verdict", "misprint", "scale", "seconds"}
    assert keys <= set(result)
    assert (result["id"], result["verdict"], result["misprint"]) == (f"wen2023/{claim}", verdict, misprint)
    assert done.returncode == 0
    assert "<table>" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion(shell):
    assert "reproduce" in call("completion", shell).stdout


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "steppe", "reproduce", "wen2023/fig4b", *TINY, *LONG, "--store", tmp_path],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
    )  # fmt: skip
    while "epoch" not in (line := process.stderr.readline()):
        assert line, "ended before it began"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from there" in err
    assert "Traceback" not in err
    assert list((tmp_path / ".work").glob("*/checkpoint.safetensors"))
    assert not (tmp_path / "figures").exists()


@pytest.mark.parametrize("characters", [0, 10])
def test_a_reader_that_has_read_enough(characters):
    """`steppe list | head -1` ends without a traceback, whether the reader has gone before a table or within it."""
    command = [sys.executable, "-m", "steppe", "list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(characters)
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait() == 0
