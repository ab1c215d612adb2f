"""The command line as a user meets it; in a process of its own where the process is the point."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import TINY, call

import steppe

COMMAND = [sys.executable, "-m", "steppe"]


LONG = ("--set", "epochs=20000000")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with the runs of one tiny figure, and what reproducing it printed."""
    root = tmp_path_factory.mktemp("store")
    done = call("reproduce", "wen2023/fig4b", *TINY, "--store", root, "--out", root / "out", "--workers", 1, "--json")
    assert done.returncode == 0, done.stderr
    return root, done


def test_a_process_of_its_own():
    """What `call` leaves out: `python -m steppe`, the streams and the exit code of a process."""
    done = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"steppe {steppe.__version__}\n"
    wrong = subprocess.run([*COMMAND, "verify", "wen2032"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "Did you mean 'wen2023'" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_help_names_every_command_and_gives_examples():
    text = call("--help").stdout
    for command in ("list", "reproduce", "verify", "runs", "data", "bench", "report", "completion"):
        assert command in text
    assert "steppe reproduce wen2023/fig4b" in text
    assert "Example" in call("verify", "--help").stdout
    assert call().stdout == text


def test_quick_commands_import_nothing_heavy():
    """JAX alone takes a second to import. The papers may import numpy, which the list of them imports."""
    code = (
        "import sys; from steppe.cli import main\n"
        "for arguments in (['--help'], ['runs', '--help'], ['verify', '--help'], ['list'], ['list', '--json']):\n"
        "    try: main(arguments)\n"
        "    except SystemExit: pass\n"
        "    heavy = {'jax', 'numba', 'numpy', 'scipy', 'matplotlib', 'duckdb'}\n"
        "    heavy -= {'numpy'} if arguments[0] == 'list' else set()\n"
        "    assert not heavy & set(sys.modules), (arguments, heavy & set(sys.modules))"
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


def test_a_queue_goes_on_after_a_failure(store, tmp_path, monkeypatch):
    """Two figures, the first of which cannot be drawn: the second is written, and the exit code is 1."""
    from steppe import experiments
    from steppe.cli import main

    def write(figure, *rest, changes):
        if figure.id == "fig4b":
            raise FloatingPointError("nothing to draw")
        return [Path(figure.id)]

    monkeypatch.setattr(experiments, "write", write)
    root = shutil.copytree(store[0], tmp_path / "runs")
    targets = ["reproduce", "wen2023/fig4b", "wen2023/fig4a", *map(str, TINY), "--store", str(root), "--workers", "1"]
    with pytest.raises(FloatingPointError):
        main([*targets, "--out", str(root / "queue")])
    with pytest.raises(SystemExit, match="1"):
        main([*targets, "--out", str(root / "queue"), "--queue"])


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
        (["reproduce", "wen2023/fig4bb"], 2, "Did you mean 'fig4b'"),
        (["reproduce", "fig1"], 2, "in several papers. Name one: conflicting-biases/fig1, mulayoff2021/fig1, wen2023/"),
        (["verify", "fig1"], 2, "in several papers"),
        (["reproduce", "fig4bb"], 2, "Did you mean 'fig4b'"),
        (["reproduce"], 2, "name what to reproduce"),
        (["reproduce", "wen2023/eq5-printed"], 2, "no such figure at smoke scale"),
        (["explain", "wen2023"], 2, "Name one of them"),
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
def test_wrong_use(arguments, code, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call(*arguments)
    assert done.returncode == code
    assert message in done.stderr + done.stdout
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
    assert '<table class="claims">' in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion(shell):
    assert "reproduce" in call("completion", shell).stdout


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(tmp_path):
    process = subprocess.Popen(
        [*COMMAND, "reproduce", "wen2023/fig4b", *TINY, *LONG, "--store", tmp_path],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
    )  # fmt: skip
    # A run that says so stops at a checkpoint, however soon it is asked to; the line with its epoch comes 15 s later.
    while "running" not in (line := process.stderr.readline()):
        assert line, "ended before it began"
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
    with subprocess.Popen([*COMMAND, "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(characters)
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait() == 0
